//! Who watches a run: for progress, and to end it when a launch does not come back. The run tells before it queues
//! something that a broken kernel could hang in, and after it has come back. What else a driver is asked for (loading, copying) is
//! told by the device itself, where it is a [`gpu::watched::Watched`].

/// The watcher of a run.
pub trait Watch {
    /// Both images are loadable: on which device they are compared, and which kernel.
    fn begun(&mut self, device: &gpu::DeviceInfo, kernel: &str) {
        let _ = (device, kernel);
    }

    /// What is queued now; it must come back within the time limit of a launch, `launches` times.
    fn queued(&mut self, what: &str, launches: u32);

    /// It came back.
    fn returned(&mut self);

    /// How far a phase is.
    fn progress(&mut self, phase: &str, done: u64, total: u64);
}

/// Nobody.
pub struct Unwatched;

impl Watch for Unwatched {
    fn queued(&mut self, _what: &str, _launches: u32) {}
    fn returned(&mut self) {}
    fn progress(&mut self, _phase: &str, _done: u64, _total: u64) {}
}
