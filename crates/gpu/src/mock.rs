//! A device without hardware: memory that is checked, kernels that a text describes ([`script`]), time that a script
//! keeps. For tests of everything that drives a device, cheating kernels included.

mod behavior;
mod memory;
pub mod noise;
pub mod script;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use behavior::State;
use memory::MockMemory;
pub use noise::Noise;
use script::{Cheat, KernelScript, Script};

use crate::{
    Address, Device, DeviceInfo, Error, ErrorKind, Event, Kernel, KernelLimits, Launch, Memory, Module, Result,
    Telemetry,
};

/// Memory that the device claims to have.
const TOTAL_BYTES: u64 = 8 << 30;

/// What a launch costs beside the kernel, on the queue.
const LAUNCH_OVERHEAD_NS: f64 = 2000.0;

struct Loaded {
    module: u64,
    script: KernelScript,
    state: State,
}

/// The device.
pub struct Mock {
    info: DeviceInfo,
    memory: RefCell<MockMemory>,
    modules: RefCell<HashMap<u64, Script>>,
    kernels: RefCell<HashMap<u64, Loaded>>,
    events: RefCell<HashMap<u64, Option<f64>>>,
    noise: RefCell<Noise>,
    /// Device time, nanoseconds.
    now: Cell<f64>,
    next: Cell<u64>,
    /// What went wrong in a kernel: told at the next synchronization, and for good.
    fault: RefCell<Option<String>>,
}

impl Default for Mock {
    fn default() -> Self {
        Mock::new()
    }
}

impl Mock {
    /// With times that are exactly the scripts'.
    pub fn new() -> Mock {
        Mock::with_noise(Noise::none())
    }

    /// With times that vary.
    pub fn with_noise(noise: Noise) -> Mock {
        Mock {
            info: DeviceInfo {
                id: "mock".into(),
                name: "mock device".into(),
                target: script::TARGET.into(),
                driver: "mock".into(),
                bus_id: String::new(), // each process has its own
                compute_units: 8,
                wave_size: 64,
                last_level_cache_bytes: 1 << 20,
                max_lds_bytes: 64 << 10,
                max_work_group_size: 1024,
                peak_bytes_per_second: Some(1e12),
                max_clock_hz: Some(1e9),
            },
            memory: RefCell::default(),
            modules: RefCell::default(),
            kernels: RefCell::default(),
            events: RefCell::default(),
            noise: RefCell::new(noise),
            now: Cell::new(0.0),
            next: Cell::new(1),
            fault: RefCell::default(),
        }
    }

    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    fn alive(&self) -> Result<()> {
        match &*self.fault.borrow() {
            Some(fault) => Err(Error::new(ErrorKind::Fault, fault.clone())),
            None => Ok(()),
        }
    }

    fn run(&self, launch: &Launch<'_>) -> Result<f64> {
        let mut kernels = self.kernels.borrow_mut();
        let kernel = kernels.get_mut(&launch.kernel.0).ok_or_else(|| gone("kernel"))?;
        let work_items: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
        let groups: u64 = launch.grid.iter().map(|n| u64::from(*n)).product();
        if work_items == 0 || groups == 0 || work_items > self.info.max_work_group_size.into() {
            let message = format!("launch of {groups} work-groups of {work_items} work-items: invalid configuration");
            return Err(Error::new(ErrorKind::BadLaunch, message));
        }
        let outcome = kernel.state.run(&kernel.script, launch.arguments, &mut self.memory.borrow_mut());
        let (time_ns, factor) = (kernel.script.time_ns, kernel.script.factor);
        if kernel.script.cheat == Cheat::Patch {
            kernels.values_mut().for_each(|other| other.script.factor = factor);
        }
        match outcome {
            Ok(share) => Ok(self.noise.borrow_mut().apply(time_ns * share)),
            Err(fault) => {
                *self.fault.borrow_mut() = Some(fault);
                Ok(0.0)
            }
        }
    }
}

fn gone(what: &str) -> Error {
    Error::new(ErrorKind::Driver, format!("the {what} is not loaded any more"))
}

impl Device for Mock {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<Memory> {
        Ok(Memory { free: TOTAL_BYTES.saturating_sub(self.memory.borrow().in_use()), total: TOTAL_BYTES })
    }

    fn telemetry(&self) -> Telemetry {
        Telemetry { clock_hz: Some(1e9), temperature_celsius: Some(40.0), ..Telemetry::default() }
    }

    fn allocate(&self, bytes: u64) -> Result<Address> {
        self.alive()?;
        let free = self.memory()?.free;
        if bytes > free {
            let message = format!("{bytes} bytes of device memory asked for, {free} free: out of memory");
            return Err(Error::new(ErrorKind::OutOfMemory, message));
        }
        Ok(Address(self.memory.borrow_mut().allocate(bytes)))
    }

    fn free(&self, at: Address) -> Result<()> {
        self.memory.borrow_mut().free(at.0).map_err(|why| Error::new(ErrorKind::Driver, why))
    }

    fn write(&self, to: Address, bytes: &[u8]) -> Result<()> {
        self.alive()?;
        let mut memory = self.memory.borrow_mut();
        let place = memory.at_mut(to.0, bytes.len()).map_err(|why| Error::new(ErrorKind::Driver, why))?;
        place.copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, from: Address, into: &mut [u8]) -> Result<()> {
        self.alive()?;
        let memory = self.memory.borrow();
        into.copy_from_slice(memory.at(from.0, into.len()).map_err(|why| Error::new(ErrorKind::Driver, why))?);
        Ok(())
    }

    fn copy(&self, to: Address, from: Address, bytes: u64) -> Result<()> {
        let mut content = vec![0; bytes as usize];
        self.read(from, &mut content)?;
        self.write(to, &content)
    }

    fn fill(&self, to: Address, word: u32, words: u64) -> Result<()> {
        self.alive()?;
        let mut memory = self.memory.borrow_mut();
        let place = memory.at_mut(to.0, 4 * words as usize).map_err(|why| Error::new(ErrorKind::Driver, why))?;
        place.chunks_exact_mut(4).for_each(|chunk| chunk.copy_from_slice(&word.to_le_bytes()));
        Ok(())
    }

    fn load(&self, image: &[u8]) -> Result<Module> {
        let script = Script::parse(image)?;
        let number = self.number();
        self.modules.borrow_mut().insert(number, script);
        Ok(Module(number))
    }

    fn unload(&self, module: Module) -> Result<()> {
        self.modules.borrow_mut().remove(&module.0).ok_or_else(|| gone("module"))?;
        self.kernels.borrow_mut().retain(|_, kernel| kernel.module != module.0);
        let mut memory = self.memory.borrow_mut();
        (memory.slowed, memory.patched) = (false, false);
        Ok(())
    }

    fn kernels(&self, module: Module) -> Result<Option<Vec<String>>> {
        let modules = self.modules.borrow();
        let script = modules.get(&module.0).ok_or_else(|| gone("module"))?;
        Ok(Some(script.kernel.iter().map(|kernel| kernel.name.clone()).collect()))
    }

    fn kernel(&self, module: Module, name: &str) -> Result<Kernel> {
        let modules = self.modules.borrow();
        let script = modules.get(&module.0).ok_or_else(|| gone("module"))?;
        let kernel = script.kernel.iter().find(|kernel| kernel.name == name);
        let kernel =
            kernel.ok_or_else(|| Error::new(ErrorKind::NoKernel, format!("the image has no kernel `{name}`")))?;
        let number = self.number();
        let loaded = Loaded { module: module.0, script: kernel.clone(), state: State::default() };
        self.kernels.borrow_mut().insert(number, loaded);
        Ok(Kernel(number))
    }

    fn parameters(&self, kernel: Kernel) -> Result<Option<Vec<(u64, u64)>>> {
        let kernels = self.kernels.borrow();
        Ok(kernels.get(&kernel.0).ok_or_else(|| gone("kernel"))?.script.parameters.clone())
    }

    fn limits(&self, kernel: Kernel) -> Result<KernelLimits> {
        let kernels = self.kernels.borrow();
        kernels.get(&kernel.0).ok_or_else(|| gone("kernel"))?;
        Ok(KernelLimits { max_work_group_size: self.info.max_work_group_size, ..KernelLimits::default() })
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.alive()?;
        let time_ns = self.run(launch)?;
        self.now.set(self.now.get() + LAUNCH_OVERHEAD_NS + time_ns);
        Ok(())
    }

    fn launch_between(&self, launch: &Launch<'_>, start: Event, stop: Event) -> Result<()> {
        self.alive()?;
        self.now.set(self.now.get() + LAUNCH_OVERHEAD_NS);
        self.record(start)?;
        let time_ns = self.run(launch)?;
        self.now.set(self.now.get() + time_ns);
        self.record(stop)
    }

    fn event(&self) -> Result<Event> {
        let number = self.number();
        self.events.borrow_mut().insert(number, None);
        Ok(Event(number))
    }

    fn record(&self, event: Event) -> Result<()> {
        let mut events = self.events.borrow_mut();
        *events.get_mut(&event.0).ok_or_else(|| gone("event"))? = Some(self.now.get());
        Ok(())
    }

    fn elapsed_ns(&self, from: Event, to: Event) -> Result<f64> {
        self.alive()?;
        let events = self.events.borrow();
        let stamp = |event: Event| {
            let stamp = events.get(&event.0).copied().flatten();
            stamp.ok_or_else(|| Error::new(ErrorKind::Driver, "the event was not recorded"))
        };
        Ok(stamp(to)? - stamp(from)?)
    }

    fn synchronize(&self) -> Result<()> {
        self.alive()
    }
}
