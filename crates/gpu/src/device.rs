//! The trait, and the values that go through it.

use serde::{Deserialize, Serialize};

use crate::Result;

/// A place in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

/// A loaded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Module(pub u64);

/// A kernel of a loaded image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernel(pub u64);

/// A point in the device's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event(pub u64);

/// What a device is.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// As the user names it: `hip:0`, `cuda:0`, `mock`.
    pub id: String,
    /// What the driver calls it: `AMD Instinct MI355X`.
    pub name: String,
    /// `gfx950:sramecc+:xnack-`, `sm_90`.
    pub target: String,
    /// Which driver library, with its version and path.
    pub driver: String,
    /// Names the physical device whatever the numbering (PCI bus ID): for the lock file. Empty for a device that nobody else can
    /// have, which needs no lock.
    pub bus_id: String,
    /// Compute units (AMD) or multiprocessors (NVIDIA): `cu_count` of site files.
    pub compute_units: u32,
    /// Lanes of a wave: 64, 32.
    pub wave_size: u32,
    /// Bytes of the largest cache in front of memory; 0 when nobody tells.
    pub last_level_cache_bytes: u64,
    /// LDS (shared memory) that one work-group can have, opted in to.
    pub max_lds_bytes: u32,
    /// Work-items of a work-group.
    pub max_work_group_size: u32,
    /// Bytes per second that memory can move at its highest clock; none when the driver does not tell.
    pub peak_bytes_per_second: Option<f64>,
    /// The highest engine clock, hertz.
    pub max_clock_hz: Option<f64>,
}

/// Device memory, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Not in use by anybody.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

/// What the driver says of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelLimits {
    /// Work-items of a work-group at most.
    pub max_work_group_size: u32,
    /// Static LDS, bytes.
    pub static_lds_bytes: u32,
    /// Scratch (local memory) of a work-item, bytes.
    pub scratch_bytes: u32,
    /// Registers of a work-item.
    pub registers: u32,
}

/// One launch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: Kernel,
    /// Work-groups in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a work-group in x, y, z.
    pub block: [u32; 3],
    /// Dynamic LDS, bytes.
    pub dynamic_lds_bytes: u32,
    /// The argument buffer, packed: explicit arguments at their offsets. Hidden ones are the driver's to fill.
    pub arguments: &'a [u8],
}

/// The device's state now; what the driver does not tell is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// Engine clock, hertz.
    pub clock_hz: Option<f64>,
    /// Memory clock, hertz.
    pub memory_clock_hz: Option<f64>,
    /// Degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// Watts.
    pub power_watts: Option<f64>,
    /// Why the clock is held down, in the driver's words; empty when it is not.
    pub throttling: Vec<String>,
    /// Other processes on the device: ID and, where known, name.
    pub other_processes: Vec<String>,
}

/// A device. All calls are of one thread; launches go to one queue, in order. A method that is added here is passed on in
/// [`crate::watched`] too.
pub trait Device {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// Its memory now.
    fn memory(&self) -> Result<Memory>;

    /// Its state now; what cannot be asked is left out.
    fn telemetry(&self) -> Telemetry;

    /// Takes memory. The error for too little names the sizes asked for and free.
    fn allocate(&self, bytes: u64) -> Result<Address>;

    /// Gives memory back.
    fn free(&self, at: Address) -> Result<()>;

    /// Copies to the device; returns when `bytes` may be reused.
    fn write(&self, to: Address, bytes: &[u8]) -> Result<()>;

    /// Copies from the device after everything queued before has run.
    fn read(&self, from: Address, into: &mut [u8]) -> Result<()>;

    /// Copies within the device, queued.
    fn copy(&self, to: Address, from: Address, bytes: u64) -> Result<()>;

    /// Fills `words` 32-bit words, queued.
    fn fill(&self, to: Address, word: u32, words: u64) -> Result<()>;

    /// Loads an image: a code object, a cubin, PTX.
    fn load(&self, image: &[u8]) -> Result<Module>;

    /// Unloads it with its kernels.
    fn unload(&self, module: Module) -> Result<()>;

    /// Names of the kernels of an image; none when the driver does not tell.
    fn kernels(&self, module: Module) -> Result<Option<Vec<String>>> {
        let _ = module;
        Ok(None)
    }

    /// A kernel of an image.
    fn kernel(&self, module: Module, name: &str) -> Result<Kernel>;

    /// Offset and size of each of its parameters in the argument buffer, bytes, by position; none when the driver does not
    /// tell.
    fn parameters(&self, kernel: Kernel) -> Result<Option<Vec<(u64, u64)>>> {
        let _ = kernel;
        Ok(None)
    }

    /// What the driver says of it.
    fn limits(&self, kernel: Kernel) -> Result<KernelLimits>;

    /// Queues a launch.
    fn launch(&self, launch: &Launch<'_>) -> Result<()>;

    /// Queues a launch whose begin and end are stamped into the events: by the device around the kernel alone where the
    /// driver can, else around the launch in the queue.
    fn launch_between(&self, launch: &Launch<'_>, start: Event, stop: Event) -> Result<()> {
        self.record(start)?;
        self.launch(launch)?;
        self.record(stop)
    }

    /// Makes an event.
    fn event(&self) -> Result<Event>;

    /// Queues that `event` be stamped when all that is queued before has run.
    fn record(&self, event: Event) -> Result<()>;

    /// Time between two recorded events, nanoseconds; waits for them.
    fn elapsed_ns(&self, from: Event, to: Event) -> Result<f64>;

    /// Waits until all that is queued has run. A fault of a kernel shows here at the latest.
    fn synchronize(&self) -> Result<()>;
}
