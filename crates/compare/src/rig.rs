//! A kernel ready to be launched on a site: images loaded, buffers allocated, arguments packed. Correctness and timing both
//! work on one.

use gpu::{Address, Device, Kernel, Launch, Module};

use crate::buffers::{Guarded, Trespass};
use crate::lds::Filler;
use crate::pack::Layout;
use crate::random::Random;
use crate::site::file::Role;
use crate::site::{Buffer, Site};

/// Bytes that are copied between host and device at once.
pub const CHUNK_BYTES: usize = 64 << 20;

/// Two images of one kernel, and how it is launched.
#[derive(Clone, Copy)]
pub struct Subject<'s> {
    /// The device.
    pub device: &'s dyn Device,
    /// The site.
    pub site: &'s Site,
    /// Where its arguments stand.
    pub layout: &'s Layout,
    /// The reference's image.
    pub reference: &'s [u8],
    /// The test's.
    pub test: &'s [u8],
    /// The kernel's name in both.
    pub kernel: &'s str,
    /// Fills LDS before a launch, where that can be done.
    pub filler: Option<Filler>,
}

/// A loaded kernel.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    module: Module,
    /// The kernel.
    pub kernel: Kernel,
}

impl Loaded {
    /// Loads an image and finds the kernel in it.
    pub fn load(device: &dyn Device, image: &[u8], kernel: &str) -> gpu::Result<Loaded> {
        let module = device.load(image)?;
        match device.kernel(module, kernel) {
            Ok(kernel) => Ok(Loaded { module, kernel }),
            Err(error) => {
                let _ = device.unload(module); // the first error says more
                Err(error)
            }
        }
    }

    /// Unloads it.
    pub fn unload(self, device: &dyn Device) -> gpu::Result<()> {
        device.unload(self.module)
    }
}

/// The buffers of one launch, in the order of the site's.
pub struct BufferSet {
    buffers: Vec<Guarded>,
    arguments: Vec<u8>,
    /// Memory that only moves the others to new addresses.
    spacer: Option<Address>,
}

impl BufferSet {
    /// Allocates; a spacer of random size comes first, so that fresh buffers have fresh addresses.
    pub fn allocate(device: &dyn Device, site: &Site, layout: &Layout, random: &mut Random) -> gpu::Result<BufferSet> {
        let spacer = device.allocate(4096 * (1 + random.below(1024)))?;
        let mut set = BufferSet { buffers: Vec::new(), arguments: Vec::new(), spacer: Some(spacer) };
        for (_, buffer) in site.buffers() {
            match Guarded::allocate(device, buffer.bytes) {
                Ok(guarded) => set.buffers.push(guarded),
                Err(error) => {
                    let _ = set.free(device); // the first error says more
                    return Err(error);
                }
            }
        }
        let addresses: Vec<u64> = set.buffers.iter().map(|buffer| buffer.data().0).collect();
        set.arguments = layout.pack(site, &addresses);
        Ok(set)
    }

    /// Gives everything back.
    pub fn free(self, device: &dyn Device) -> gpu::Result<()> {
        if let Some(spacer) = self.spacer {
            device.free(spacer)?;
        }
        self.buffers.into_iter().try_for_each(|buffer| buffer.free(device))
    }

    /// Queues a launch of `kernel` with these buffers.
    pub fn launch<'l>(&'l self, kernel: Kernel, site: &Site) -> Launch<'l> {
        Launch {
            kernel,
            grid: site.grid,
            block: site.block,
            dynamic_lds_bytes: site.dynamic_lds_bytes,
            arguments: &self.arguments,
        }
    }

    /// Buffer by number, with what the site says of it.
    pub fn each<'s>(&'s self, site: &'s Site) -> impl Iterator<Item = (usize, &'s str, &'s Buffer, &'s Guarded)> {
        let pairs = site.buffers().zip(&self.buffers).enumerate();
        pairs.map(|(number, ((name, buffer), guarded))| (number, name, buffer, guarded))
    }

    /// New guard patterns, inputs as given, poison in the outputs. `inputs` has an entry for each buffer, empty where
    /// there is no fill.
    pub fn prepare(
        &mut self,
        device: &dyn Device,
        site: &Site,
        inputs: &[Vec<u8>],
        poison: u32,
        random: &mut Random,
    ) -> gpu::Result<()> {
        self.arm(device, random)?;
        self.write_inputs(device, site, inputs, |_| true)?;
        self.poison_outputs(device, site, poison)
    }

    /// What has a fill and a role that `wanted` names, as given.
    pub fn write_inputs(
        &self,
        device: &dyn Device,
        site: &Site,
        inputs: &[Vec<u8>],
        wanted: impl Fn(Role) -> bool,
    ) -> gpu::Result<()> {
        for (number, _, buffer, guarded) in self.each(site) {
            let input = inputs.get(number).filter(|input| !input.is_empty() && wanted(buffer.role));
            if let Some(input) = input {
                device.write(guarded.data(), input)?;
            }
        }
        Ok(())
    }

    /// New patterns in the guard zones.
    pub fn arm(&mut self, device: &dyn Device, random: &mut Random) -> gpu::Result<()> {
        self.buffers.iter_mut().try_for_each(|guarded| guarded.arm(device, random))
    }

    /// Copies what has a fill and a role that `wanted` names from another set.
    pub fn copy_filled(
        &self,
        device: &dyn Device,
        site: &Site,
        from: &BufferSet,
        wanted: impl Fn(Role) -> bool,
    ) -> gpu::Result<()> {
        for ((_, _, buffer, to), from) in self.each(site).zip(&from.buffers) {
            if buffer.fill.is_some() && wanted(buffer.role) {
                device.copy(to.data(), from.data(), buffer.bytes)?;
            }
        }
        Ok(())
    }

    /// Writes into one buffer.
    pub fn write_at(&self, device: &dyn Device, number: usize, offset: usize, bytes: &[u8]) -> gpu::Result<()> {
        let Some(guarded) = self.buffers.get(number) else { return Ok(()) };
        device.write(Address(guarded.data().0 + offset as u64), bytes)
    }

    /// Poison in what is written and has no fill; inputs and guards stay.
    pub fn poison_outputs(&self, device: &dyn Device, site: &Site, poison: u32) -> gpu::Result<()> {
        let is_poisoned = |buffer: &Buffer| matches!(buffer.role, Role::Out | Role::Scratch) && buffer.fill.is_none();
        let outputs = self.each(site).filter(|(_, _, buffer, _)| is_poisoned(buffer));
        outputs.into_iter().try_for_each(|(_, _, _, guarded)| guarded.poison(device, poison))
    }

    /// Writes outside all buffers.
    pub fn trespasses(&self, device: &dyn Device, site: &Site) -> gpu::Result<Vec<Trespass>> {
        let mut found = Vec::new();
        for (_, name, _, guarded) in self.each(site) {
            found.extend(guarded.trespasses(device, name)?);
        }
        Ok(found)
    }

    /// Reads a buffer piece by piece: `visit(offset, bytes)`, until it says `false`.
    pub fn read_in_chunks(
        &self,
        device: &dyn Device,
        number: usize,
        mut visit: impl FnMut(usize, &[u8]) -> bool,
    ) -> gpu::Result<()> {
        let Some(guarded) = self.buffers.get(number) else { return Ok(()) };
        let total = guarded.bytes as usize;
        let mut chunk = vec![0; total.min(CHUNK_BYTES)];
        let mut offset = 0;
        while offset < total {
            let length = chunk.len().min(total - offset);
            device.read(Address(guarded.data().0 + offset as u64), &mut chunk[..length])?;
            if !visit(offset, &chunk[..length]) {
                break;
            }
            offset += length;
        }
        Ok(())
    }

    /// Whether every piece of a buffer is right: `is_right(offset, bytes)`; ends at the first that is not.
    pub fn every_chunk(
        &self,
        device: &dyn Device,
        number: usize,
        is_right: impl Fn(usize, &[u8]) -> bool,
    ) -> gpu::Result<bool> {
        let mut all = true;
        self.read_in_chunks(device, number, |offset, found| {
            all = is_right(offset, found);
            all
        })?;
        Ok(all)
    }

    /// Whether a buffer holds these bytes.
    pub fn holds(&self, device: &dyn Device, number: usize, content: &[u8]) -> gpu::Result<bool> {
        self.every_chunk(device, number, |offset, found| content.get(offset..offset + found.len()) == Some(found))
    }

    /// Reads a whole buffer.
    pub fn read_all(&self, device: &dyn Device, number: usize) -> gpu::Result<Vec<u8>> {
        let Some(guarded) = self.buffers.get(number) else { return Ok(Vec::new()) };
        let mut content = vec![0; guarded.bytes as usize];
        device.read(guarded.data(), &mut content)?;
        Ok(content)
    }
}
