//! A device whose calls are told to somebody before they are made and when they came back. A driver may hang in any of them;
//! who watches from another process has to know in which.
//!
//! What is only queued is not told: launches and events stand inside timed regions, fills and copies within the device come by
//! thousands between them. Who launches says so at a better place; the others show where they are waited for.

use crate::{Address, Device, DeviceInfo, Event, Kernel, KernelLimits, Launch, Memory, Module, Result, Telemetry};

/// Is told.
pub trait Observer {
    /// The driver is asked for something, said so that "… did not come back" can follow: `loading the test`. It has to move
    /// `bytes`, which is 0 for what takes no time.
    fn asked(&self, what: &str, bytes: u64);

    /// It came back, with an error or without.
    fn answered(&self);
}

/// The device. Every method of [`Device`] stands here: one that has a default would be lost otherwise.
pub struct Watched<'w> {
    device: &'w dyn Device,
    observer: &'w dyn Observer,
    /// `the reference`, and its bytes.
    images: &'w [(&'w str, &'w [u8])],
}

impl<'w> Watched<'w> {
    /// Watches a device; the images are those that have a name.
    pub fn new(device: &'w dyn Device, observer: &'w dyn Observer, images: &'w [(&'w str, &'w [u8])]) -> Watched<'w> {
        Watched { device, observer, images }
    }

    fn told<T>(&self, what: &str, bytes: u64, call: impl FnOnce(&dyn Device) -> T) -> T {
        self.observer.asked(what, bytes);
        let answer = call(self.device);
        self.observer.answered();
        answer
    }
}

impl Device for Watched<'_> {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn memory(&self) -> Result<Memory> {
        self.told("asking for the free memory", 0, |device| device.memory())
    }

    fn telemetry(&self) -> Telemetry {
        self.told("asking for clocks and temperature", 0, |device| device.telemetry())
    }

    fn allocate(&self, bytes: u64) -> Result<Address> {
        self.told(&format!("allocating {bytes} bytes"), bytes, |device| device.allocate(bytes))
    }

    fn free(&self, at: Address) -> Result<()> {
        self.told("freeing device memory", 0, |device| device.free(at))
    }

    fn write(&self, to: Address, bytes: &[u8]) -> Result<()> {
        let length = bytes.len() as u64;
        self.told(&format!("copying {length} bytes to the device"), length, |device| device.write(to, bytes))
    }

    fn read(&self, from: Address, into: &mut [u8]) -> Result<()> {
        let length = into.len() as u64;
        self.told(&format!("copying {length} bytes from the device"), length, |device| device.read(from, into))
    }

    fn copy(&self, to: Address, from: Address, bytes: u64) -> Result<()> {
        self.device.copy(to, from, bytes)
    }

    fn fill(&self, to: Address, word: u32, words: u64) -> Result<()> {
        self.device.fill(to, word, words)
    }

    fn load(&self, image: &[u8]) -> Result<Module> {
        let name = self.images.iter().find(|(_, bytes)| *bytes == image).map_or("an image", |(name, _)| name);
        self.told(&format!("loading {name}"), image.len() as u64, |device| device.load(image))
    }

    fn unload(&self, module: Module) -> Result<()> {
        self.told("unloading an image", 0, |device| device.unload(module))
    }

    fn kernel(&self, module: Module, name: &str) -> Result<Kernel> {
        self.told("looking for the kernel", 0, |device| device.kernel(module, name))
    }

    fn kernels(&self, module: Module) -> Result<Option<Vec<String>>> {
        self.device.kernels(module)
    }

    fn parameters(&self, kernel: Kernel) -> Result<Option<Vec<(u64, u64)>>> {
        self.device.parameters(kernel)
    }

    fn limits(&self, kernel: Kernel) -> Result<KernelLimits> {
        self.device.limits(kernel)
    }

    fn launch(&self, launch: &Launch<'_>) -> Result<()> {
        self.device.launch(launch)
    }

    fn launch_between(&self, launch: &Launch<'_>, start: Event, stop: Event) -> Result<()> {
        self.device.launch_between(launch, start, stop)
    }

    fn event(&self) -> Result<Event> {
        self.told("making an event", 0, |device| device.event())
    }

    fn record(&self, event: Event) -> Result<()> {
        self.device.record(event)
    }

    fn elapsed_ns(&self, from: Event, to: Event) -> Result<f64> {
        self.device.elapsed_ns(from, to)
    }

    fn synchronize(&self) -> Result<()> {
        self.told("waiting for what was queued", 0, |device| device.synchronize())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::mock::Mock;

    #[derive(Default)]
    struct Heard(RefCell<Vec<String>>);

    impl Observer for Heard {
        fn asked(&self, what: &str, bytes: u64) {
            self.0.borrow_mut().push(format!("{what} ({bytes})"));
        }

        fn answered(&self) {
            self.0.borrow_mut().push("answered".into());
        }
    }

    #[test]
    fn calls_are_told_before_and_after_and_images_by_their_name() {
        let (mock, heard) = (Mock::new(), Heard::default());
        let images: [(&str, &[u8]); 2] = [("the reference", b"a"), ("the test", b"b")];
        let device = Watched::new(&mock, &heard, &images);
        let at = device.allocate(4096).expect("memory");
        device.write(at, &[7; 4096]).expect("room");
        let mut back = [0; 16];
        device.read(at, &mut back).expect("what was written");
        assert_eq!(back, [7; 16]);
        assert!(device.load(b"b").is_err(), "the mock reads scripts");
        let expected = [
            "allocating 4096 bytes (4096)",
            "answered",
            "copying 4096 bytes to the device (4096)",
            "answered",
            "copying 16 bytes from the device (16)",
            "answered",
            "loading the test (1)",
            "answered",
        ];
        assert_eq!(*heard.0.borrow(), expected);
    }
}
