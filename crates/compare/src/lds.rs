//! LDS is not cleared between work-groups, so a kernel that reads what it did not write there is right as long as the same
//! kernel ran before. Here all LDS of the device is filled before each launch, every time with another word: such a
//! kernel computes another result each time, and is found by that.

use gpu::{Device, Launch};

use crate::rig::Loaded;

/// The kernel of the image that fills: arguments `u32 word, u32 bytes`, work-groups of [`WORK_ITEMS`] work-items.
pub const KERNEL: &str = "coax_fill_lds";
/// Work-items of its work-groups.
pub const WORK_ITEMS: u32 = 256;
/// A work-group writes whole steps of one word for each work-item.
const STEP_BYTES: u32 = WORK_ITEMS * 4;
/// Work-groups for each compute unit. Each takes all the LDS that one can have, so the first ones spread over all units;
/// the others are for units that share more than one can have.
const GROUPS_PER_UNIT: u32 = 4;

/// What fills, loaded.
#[derive(Clone, Copy, Debug)]
pub struct Filler {
    loaded: Loaded,
    groups: u32,
    bytes: u32,
}

impl Filler {
    /// Loads `image`, which has [`KERNEL`].
    ///
    /// # Errors
    /// What the driver says of the image; a device that does not tell how much LDS it has.
    pub fn load(device: &dyn Device, image: &[u8]) -> gpu::Result<Filler> {
        let info = device.info();
        let bytes = info.max_lds_bytes / STEP_BYTES * STEP_BYTES;
        if bytes == 0 || info.compute_units == 0 {
            let what = "the driver does not tell how much LDS there is";
            return Err(gpu::Error::new(gpu::ErrorKind::Unsupported, what));
        }
        let groups = info.compute_units.saturating_mul(GROUPS_PER_UNIT);
        Ok(Filler { loaded: Loaded::load(device, image, KERNEL)?, groups, bytes })
    }

    /// Queues that all LDS be filled.
    pub fn fill(&self, device: &dyn Device, word: u32) -> gpu::Result<()> {
        let arguments = [word.to_le_bytes(), self.bytes.to_le_bytes()].concat();
        let launch = Launch {
            kernel: self.loaded.kernel,
            grid: [self.groups, 1, 1],
            block: [WORK_ITEMS, 1, 1],
            dynamic_lds_bytes: self.bytes,
            arguments: &arguments,
        };
        device.launch(&launch).map_err(|error| error.of("filling LDS"))
    }

    /// Unloads it.
    pub fn unload(self, device: &dyn Device) -> gpu::Result<()> {
        self.loaded.unload(device)
    }
}
