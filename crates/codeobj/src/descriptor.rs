//! The kernel descriptor: 64 bytes that tell the packet processor how to launch a kernel.
//!
//! Layout and meaning: "Kernel Descriptor" in LLVM's AMDGPUUsage. The bit fields are one table, [`FIELDS`]; what is
//! computed from them (registers from granules) is here.
//!
//! ```text
//!  0 group_segment_fixed_size    u32     44 compute_pgm_rsrc3       u32
//!  4 private_segment_fixed_size  u32     48 compute_pgm_rsrc1       u32
//!  8 kernarg_size                u32     52 compute_pgm_rsrc2       u32
//! 12 reserved                            56 kernel_code_properties  u16
//! 16 kernel_code_entry_byte_offset i64   58 kernarg_preload         u16
//! 24 reserved                            60 reserved
//! ```

mod field;

pub use field::{FIELDS, Family, Field};

/// Bytes of a kernel descriptor.
pub const SIZE: usize = 64;

/// Byte offset, inside the descriptor, of the entry offset that a linker fills in.
pub(crate) const ENTRY_OFFSET_AT: u64 = 16;

/// A kernel descriptor, as its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    bytes: [u8; SIZE],
}

impl Descriptor {
    /// Takes the bytes of the `.kd` object. Every pattern is a descriptor.
    pub fn new(bytes: [u8; SIZE]) -> Descriptor {
        Descriptor { bytes }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; SIZE] {
        &self.bytes
    }

    /// Static LDS of a work-group, bytes.
    pub fn group_segment_fixed_size(&self) -> u32 {
        self.word(0)
    }

    /// Scratch of a work-item, bytes.
    pub fn private_segment_fixed_size(&self) -> u32 {
        self.word(4)
    }

    /// Kernel arguments, bytes. 0 means "not recorded": most hand-written code objects leave it so.
    pub fn kernarg_size(&self) -> u32 {
        self.word(8)
    }

    /// Distance from the descriptor's address to the first instruction, bytes.
    pub fn kernel_code_entry_byte_offset(&self) -> i64 {
        i64::from_le_bytes(std::array::from_fn(|i| self.bytes[ENTRY_OFFSET_AT as usize + i]))
    }

    /// Whether the kernel runs with 32 lanes per wave. Meaningful from gfx10 on.
    pub fn wavefront_size32(&self) -> bool {
        self.value("wavefront_size32") == 1
    }

    /// Kernel arguments that are loaded into SGPRs before the kernel starts, dwords. When not 0, the kernel has a
    /// second entry 256 bytes after the first.
    pub fn kernarg_preload_length(&self) -> u32 {
        self.value("user_sgpr_kernarg_preload_length") as u32
    }

    /// First AGPR's place in the unified register file; only gfx90a, gfx94x and gfx950 have one.
    pub fn accum_offset(&self, family: Family) -> Option<u32> {
        (family == Family::Gfx90a).then(|| (self.value("accum_offset") as u32 + 1) * 4)
    }

    /// VGPRs that a wave gets, AGPRs included where they share the file.
    ///
    /// The compiler may allocate more than the kernel uses, to keep more waves off.
    pub fn allocated_vgprs(&self, family: Family, wave32: bool) -> u32 {
        (self.value("granulated_workitem_vgpr_count") as u32 + 1) * family.vgpr_granule(wave32)
    }

    /// SGPRs that a wave gets; none from gfx10 on, where every wave gets all of them.
    pub fn allocated_sgprs(&self, family: Family) -> Option<u32> {
        const GRANULE: u32 = 8;
        // The processors that gave up counting SGPRs are those that introduced wave32.
        (!family.has_wave32()).then(|| (self.value("granulated_wavefront_sgpr_count") as u32 + 1) * GRANULE)
    }

    /// Every field that `family` defines, with its raw value, in the order of the bytes.
    pub fn fields(&self, family: Family) -> impl Iterator<Item = (&'static Field, u64)> + '_ {
        FIELDS.iter().filter(move |field| field.exists_on(family)).map(|field| (field, field.get(&self.bytes)))
    }

    /// The field that `family` calls `name`, as in [`Field::name`].
    pub fn field(family: Family, name: &str) -> Option<&'static Field> {
        FIELDS.iter().find(|field| field.name == name && field.exists_on(family))
    }

    /// Writes a raw value. `false`, and nothing written, when it needs more bits than the field has.
    #[must_use]
    pub fn set(&mut self, field: &Field, value: u64) -> bool {
        field.set(&mut self.bytes, value)
    }

    fn value(&self, name: &str) -> u64 {
        FIELDS.iter().find(|field| field.name == name).map_or(0, |field| field.get(&self.bytes))
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|i| self.bytes[at + i]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_come_in_granules() {
        let mut bytes = [0; SIZE];
        bytes[48] = 0b0100_1111; // granulated VGPRs 15, SGPRs 1
        let descriptor = Descriptor::new(bytes);
        assert_eq!(descriptor.allocated_vgprs(Family::Gfx9, false), 64);
        assert_eq!(descriptor.allocated_vgprs(Family::Gfx90a, false), 128);
        assert_eq!(descriptor.allocated_vgprs(Family::Gfx11, true), 128);
        assert_eq!(descriptor.allocated_vgprs(Family::Gfx11, false), 64);
        assert_eq!(descriptor.allocated_vgprs(Family::Gfx125, true), 256);
        assert_eq!(descriptor.allocated_sgprs(Family::Gfx9), Some(16));
        assert_eq!(descriptor.allocated_sgprs(Family::Gfx10), None);
    }

    #[test]
    fn accum_offset_exists_on_a_unified_file_only() {
        let mut bytes = [0; SIZE];
        bytes[44] = 24;
        assert_eq!(Descriptor::new(bytes).accum_offset(Family::Gfx90a), Some(100));
        assert_eq!(Descriptor::new(bytes).accum_offset(Family::Gfx11), None);
    }

    #[test]
    fn a_field_is_set_without_touching_its_neighbours() {
        for family in Family::ALL {
            for (field, _) in Descriptor::new([0; SIZE]).fields(family) {
                let mut zeros = Descriptor::new([0; SIZE]);
                let mut ones = Descriptor::new([0xff; SIZE]);
                assert!(zeros.set(field, field.max()) && ones.set(field, 0), "{}", field.name);
                let inverted = ones.bytes.map(|byte| !byte);
                assert_eq!(zeros.bytes, inverted, "{} on {family:?}", field.name);
                assert_eq!((field.get(&zeros.bytes), field.get(&ones.bytes)), (field.max(), 0), "{}", field.name);
                assert!(field.max() == u64::MAX || !zeros.set(field, field.max() + 1), "{}", field.name);
            }
        }
    }

    #[test]
    fn fields_of_a_family_do_not_overlap() {
        for family in Family::ALL {
            let mut taken = [0u8; SIZE];
            for (field, _) in Descriptor::new([0; SIZE]).fields(family) {
                for bit in field.bit..field.bit + field.width {
                    let (byte, mask) = (field.byte + bit / 8, 1 << (bit % 8));
                    assert_eq!(taken[byte] & mask, 0, "{} overlaps on {family:?}", field.name);
                    taken[byte] |= mask;
                }
            }
        }
    }
}
