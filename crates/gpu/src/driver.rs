//! HIP and CUDA. Their driver interfaces have the same functions under other names, so there is one implementation of
//! [`Device`] over a table of names and numbers for each ([`Flavor`]).

mod api;
mod attributes;
mod status;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr;

use api::{Api, Handle};
pub use attributes::{CUDA, HIP};
use attributes::{Flavor, Vendor};

use crate::telemetry;
use crate::{
    Address, Device, DeviceInfo, Error, ErrorKind, Event, Kernel, KernelLimits, Launch, Memory, Module, Result,
    Telemetry,
};

/// Dynamic LDS that CUDA gives without being asked; more is opted in to for each kernel (CUDA C Programming Guide,
/// "Shared Memory": 48 KB).
const CUDA_LDS_WITHOUT_OPT_IN: u32 = 48 << 10;

/// More than a kernel can have: its parameters take at most 32,764 bytes (CUDA C++ Programming Guide, "Function Parameters").
const MAX_PARAMETERS: usize = 32_764;

/// An open device of HIP or CUDA.
pub struct Driver {
    api: Api,
    flavor: &'static Flavor,
    info: DeviceInfo,
    /// Handles are given out as numbers, so that none that was given back is ever used.
    modules: RefCell<HashMap<u64, Handle>>,
    kernels: RefCell<HashMap<u64, (Handle, u64)>>,
    events: RefCell<HashMap<u64, Handle>>,
    next: Cell<u64>,
}

impl Driver {
    /// Opens device `number` of those that the driver shows.
    pub fn open(flavor: &'static Flavor, number: u32) -> Result<Driver> {
        let api = Api::load(flavor)?;
        // SAFETY: the functions are the driver's own, loaded under the names of its interface; each out parameter points
        // to a local of the type that it is documented to fill.
        let init = unsafe { (api.init)(0) };
        let library = api.describe(flavor);
        if init != 0 && !status::means_no_device(init) {
            let name = api.error_name(init);
            let message = format!("{} does not start ({name}); driver library {library}", flavor.name);
            return Err(Error::new(ErrorKind::NoDevice, message));
        }
        let mut count: c_int = 0;
        // SAFETY: as above.
        let status = unsafe { (api.device_count)(&mut count) };
        if init != 0 || status != 0 || count <= 0 {
            let code = if init != 0 { init } else { status };
            let name = api.error_name(code);
            let hidden = flavor.hidden_by();
            let message = format!("{} finds no device ({name}); driver library {library}{hidden}", flavor.name);
            return Err(Error::new(ErrorKind::NoDevice, message));
        }
        let index = c_int::try_from(number).ok().filter(|index| *index < count).ok_or_else(|| {
            let visible = flavor.visible_devices[0];
            Error::new(
                ErrorKind::NoDevice,
                format!(
                    "{}:{number}: the last device is {}:{} ({visible} counts)",
                    flavor.kind,
                    flavor.kind,
                    count - 1
                ),
            )
        })?;
        let mut device: c_int = 0;
        // SAFETY: as above.
        api.check(unsafe { (api.device_get)(&mut device, index) }, "looking for the device")?;
        api.make_current(device)?;
        let info = attributes::describe(&api, flavor, device, number)?;
        Ok(Driver {
            api,
            flavor,
            info,
            modules: RefCell::default(),
            kernels: RefCell::default(),
            events: RefCell::default(),
            next: Cell::new(1),
        })
    }

    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    fn kernel_handle(&self, kernel: Kernel) -> Result<Handle> {
        let kernels = self.kernels.borrow();
        kernels.get(&kernel.0).map(|(handle, _)| *handle).ok_or_else(|| gone("kernel"))
    }

    fn event_handle(&self, event: Event) -> Result<Handle> {
        self.events.borrow().get(&event.0).copied().ok_or_else(|| gone("event"))
    }

    fn attribute(&self, kernel: Handle, attribute: c_int) -> u32 {
        let mut value: c_int = 0;
        // SAFETY: `kernel` is a live handle; `value` is the int that the function fills.
        let status = unsafe { (self.api.function_attribute)(&mut value, attribute, kernel) };
        if status == 0 { u32::try_from(value).unwrap_or_default() } else { 0 }
    }

    /// Queues a launch; HIP's own timing of the kernel goes to the events where it has that.
    fn queue(&self, launch: &Launch<'_>, events: Option<(Handle, Handle)>) -> Result<()> {
        let kernel = self.kernel_handle(launch.kernel)?;
        let [gx, gy, gz] = launch.grid;
        let [bx, by, bz] = launch.block;
        if self.flavor.vendor == Vendor::Nvidia && launch.dynamic_lds_bytes > CUDA_LDS_WITHOUT_OPT_IN {
            let bytes = c_int::try_from(launch.dynamic_lds_bytes).unwrap_or(c_int::MAX);
            if let Some(set) = self.api.set_function_attribute {
                // SAFETY: `kernel` is a live handle.
                let status = unsafe { set(kernel, attributes::MAX_DYNAMIC_LDS, bytes) };
                self.api.check(status, "asking for that much dynamic LDS")?;
            }
        }
        let mut size = launch.arguments.len();
        let [pointer_tag, size_tag, end_tag] = self.flavor.launch_buffer_tags;
        let tag = |number: usize| ptr::without_provenance_mut::<c_void>(number);
        let mut extra = [
            tag(pointer_tag),
            launch.arguments.as_ptr().cast_mut().cast(),
            tag(size_tag),
            ptr::from_mut(&mut size).cast(),
            tag(end_tag),
        ];
        let extra = if launch.arguments.is_empty() { ptr::null_mut() } else { extra.as_mut_ptr() };
        let lds = launch.dynamic_lds_bytes as c_uint;
        let status = match (events, self.api.launch_with_events) {
            (Some((start, stop)), Some(timed)) => {
                // This one function counts the grid in work-items.
                let work_items = |groups: u32, size: u32| groups.checked_mul(size);
                let (Some(x), Some(y), Some(z)) = (work_items(gx, bx), work_items(gy, by), work_items(gz, bz)) else {
                    return Err(Error::new(
                        ErrorKind::BadLaunch,
                        "the grid has more than 2^32 work-items in a direction",
                    ));
                };
                let null = ptr::null_mut();
                // SAFETY: live handles; `extra` and what it points to outlive the call, and the driver copies the
                // argument buffer before it returns.
                unsafe { timed(kernel, x, y, z, bx, by, bz, lds as usize, null, null.cast(), extra, start, stop, 0) }
            }
            // SAFETY: as above.
            _ => unsafe {
                let null = ptr::null_mut();
                (self.api.launch)(kernel, gx, gy, gz, bx, by, bz, lds, null, null.cast(), extra)
            },
        };
        let place = || {
            format!(
                "launch of {gx}x{gy}x{gz} work-groups of {bx}x{by}x{bz}, {lds} bytes of dynamic LDS, {size} bytes of arguments"
            )
        };
        if status == 0 { Ok(()) } else { Err(self.api.error(status, &place())) }
    }
}

fn gone(what: &str) -> Error {
    Error::new(ErrorKind::Driver, format!("the {what} is not loaded any more"))
}

impl Device for Driver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> Result<Memory> {
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: both are the size_t that the function fills.
        self.api.check(unsafe { (self.api.memory_info)(&mut free, &mut total) }, "asking for the free memory")?;
        Ok(Memory { free: free as u64, total: total as u64 })
    }

    fn telemetry(&self) -> Telemetry {
        match self.flavor.vendor {
            Vendor::Nvidia => telemetry::nvml::read(&self.info.bus_id),
            Vendor::Amd => telemetry::sysfs::read(&self.info.bus_id),
        }
    }

    fn allocate(&self, bytes: u64) -> Result<Address> {
        let mut at: u64 = 0;
        // SAFETY: a device pointer is 64 bits wide in both interfaces.
        let status = unsafe { (self.api.allocate)(&mut at, bytes.max(1) as usize) };
        if status == 0 {
            return Ok(Address(at));
        }
        let free = self.memory().map_or_else(|_| "?".into(), |memory| memory.free.to_string());
        Err(self.api.error(status, &format!("{bytes} bytes of device memory asked for, {free} free")))
    }

    fn free(&self, at: Address) -> Result<()> {
        // SAFETY: the driver checks that it gave this address out.
        self.api.check(unsafe { (self.api.free)(at.0) }, "freeing device memory")
    }

    fn write(&self, to: Address, bytes: &[u8]) -> Result<()> {
        // SAFETY: the source is `bytes`; the driver checks the destination.
        self.api.check(
            unsafe { (self.api.to_device)(to.0, bytes.as_ptr().cast(), bytes.len()) },
            "copy to the device failed",
        )
    }

    fn read(&self, from: Address, into: &mut [u8]) -> Result<()> {
        // SAFETY: the destination is `into`; the driver checks the source.
        let status = unsafe { (self.api.from_device)(into.as_mut_ptr().cast(), from.0, into.len()) };
        self.api.check(status, "copy from the device failed")
    }

    fn copy(&self, to: Address, from: Address, bytes: u64) -> Result<()> {
        // SAFETY: the driver checks both places.
        let status = unsafe { (self.api.within_device)(to.0, from.0, bytes as usize, ptr::null_mut()) };
        self.api.check(status, "copying within the device")
    }

    fn fill(&self, to: Address, word: u32, words: u64) -> Result<()> {
        // SAFETY: the driver checks the place.
        self.api.check(unsafe { (self.api.fill)(to.0, word, words as usize, ptr::null_mut()) }, "filling device memory")
    }

    fn load(&self, image: &[u8]) -> Result<Module> {
        // PTX is text that ends with a zero; the other formats have their length inside.
        let image: Vec<u8> = image.iter().copied().chain([0]).collect();
        let mut module: Handle = ptr::null_mut();
        // SAFETY: `image` outlives the call; the handle is filled on success.
        let status = unsafe { (self.api.load)(&mut module, image.as_ptr().cast()) };
        if status != 0 {
            // HIP does not tell the target; where the system does not either, the device's name says more than nothing.
            let DeviceInfo { target, name, .. } = &self.info;
            let what = if target.is_empty() { name } else { target };
            return Err(self.api.error(status, &format!("{what} cannot load the image")));
        }
        let number = self.number();
        self.modules.borrow_mut().insert(number, module);
        Ok(Module(number))
    }

    fn unload(&self, module: Module) -> Result<()> {
        let handle = self.modules.borrow_mut().remove(&module.0).ok_or_else(|| gone("module"))?;
        self.kernels.borrow_mut().retain(|_, (_, of)| *of != module.0);
        // SAFETY: the handle was live and is forgotten here.
        self.api.check(unsafe { (self.api.unload)(handle) }, "unloading an image")
    }

    fn kernel(&self, module: Module, name: &str) -> Result<Kernel> {
        let handle = self.modules.borrow().get(&module.0).copied().ok_or_else(|| gone("module"))?;
        let not_there = || Error::new(ErrorKind::NoKernel, format!("the image has no kernel `{name}`"));
        let c_name = CString::new(name).map_err(|_| not_there())?;
        let mut kernel: Handle = ptr::null_mut();
        // SAFETY: live module, terminated name, a handle to fill.
        let status = unsafe { (self.api.get_function)(&mut kernel, handle, c_name.as_ptr()) };
        if status != 0 {
            return Err(if status::means_not_found(status) {
                not_there()
            } else {
                self.api.error(status, &format!("looking for the kernel `{name}`"))
            });
        }
        let number = self.number();
        self.kernels.borrow_mut().insert(number, (kernel, module.0));
        Ok(Kernel(number))
    }

    fn parameters(&self, kernel: Kernel) -> Result<Option<Vec<(u64, u64)>>> {
        let Some(parameter) = self.api.parameter else { return Ok(None) };
        let handle = self.kernel_handle(kernel)?;
        let mut found = Vec::new();
        let (mut offset, mut size) = (0usize, 0usize);
        // SAFETY: a live kernel, two size_t to fill; a position behind the last parameter is a status.
        while unsafe { parameter(handle, found.len(), &mut offset, &mut size) } == 0 {
            if found.len() == MAX_PARAMETERS {
                return Ok(None);
            }
            found.push((offset as u64, size as u64));
        }
        Ok(Some(found))
    }

    fn limits(&self, kernel: Kernel) -> Result<KernelLimits> {
        let handle = self.kernel_handle(kernel)?;
        Ok(KernelLimits {
            max_work_group_size: self.attribute(handle, attributes::MAX_WORK_GROUP),
            static_lds_bytes: self.attribute(handle, attributes::STATIC_LDS),
            scratch_bytes: self.attribute(handle, attributes::SCRATCH),
            registers: self.attribute(handle, attributes::REGISTERS),
        })
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.queue(launch, None)
    }

    fn launch_between(&self, launch: &Launch<'_>, start: Event, stop: Event) -> Result<()> {
        if self.api.launch_with_events.is_some() {
            let events = (self.event_handle(start)?, self.event_handle(stop)?);
            return self.queue(launch, Some(events));
        }
        self.record(start)?;
        self.queue(launch, None)?;
        self.record(stop)
    }

    fn event(&self) -> Result<Event> {
        let mut event: Handle = ptr::null_mut();
        // SAFETY: a handle to fill; flags 0 is an event with timing in both interfaces.
        self.api.check(unsafe { (self.api.event_create)(&mut event, 0) }, "making an event")?;
        let number = self.number();
        self.events.borrow_mut().insert(number, event);
        Ok(Event(number))
    }

    fn record(&self, event: Event) -> Result<()> {
        let handle = self.event_handle(event)?;
        // SAFETY: a live event; null is the default queue, to which launches go.
        self.api.check(unsafe { (self.api.event_record)(handle, ptr::null_mut()) }, "recording an event")
    }

    fn elapsed_ns(&self, from: Event, to: Event) -> Result<f64> {
        let (from, to) = (self.event_handle(from)?, self.event_handle(to)?);
        let mut milliseconds: f32 = 0.0;
        // SAFETY: live events; a float to fill.
        unsafe {
            self.api.check((self.api.event_synchronize)(to), "waiting for an event")?;
            self.api.check(
                (self.api.event_elapsed)(&mut milliseconds, from, to),
                "asking for the time between two events",
            )?;
        }
        Ok(f64::from(milliseconds) * 1e6)
    }

    fn synchronize(&self) -> Result<()> {
        // SAFETY: no arguments.
        self.api.check(unsafe { (self.api.synchronize)() }, "what was queued failed")
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // What a fault has left cannot be given back; the driver does it when the process ends.
        for (_, event) in self.events.get_mut().drain() {
            // SAFETY: a live event that is forgotten here.
            unsafe { (self.api.event_destroy)(event) };
        }
        for (_, module) in self.modules.get_mut().drain() {
            // SAFETY: a live module that is forgotten here.
            unsafe { (self.api.unload)(module) };
        }
    }
}
