//! The six sites of the original program: the FP8 grouped GEMMs of one mixture-of-experts layer, forward and backward. E = 32
//! experts share M = 131,072 tokens evenly; all scales are 1.

use std::path::Path;

use super::{DeviceFacts, Site};

/// What a site of the layer computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `out[M, N] = A[M, K] · B[e, N, K]ᵀ` for the rows of each expert, with K = D1 and N = D2.
    Forward,
    /// `out[e, D1, D2] = A[rows of e, D1]ᵀ · B[rows of e, D2]`.
    Weight,
}

/// One site.
#[derive(Clone, Copy, Debug)]
pub struct Builtin {
    /// What `--site` takes.
    pub name: &'static str,
    /// First dimension.
    pub d1: u32,
    /// Second dimension.
    pub d2: u32,
    /// What it computes.
    pub direction: Direction,
}

/// Tokens.
pub const M: u32 = 131_072;
/// Experts.
pub const E: u32 = 32;

/// All of them.
pub const BUILTIN: [Builtin; 6] = {
    use Direction::{Forward, Weight};
    const fn row(name: &'static str, d1: u32, d2: u32, direction: Direction) -> Builtin {
        Builtin { name, d1, d2, direction }
    }
    [
        row("gate_up_fwd", 2880, 5760, Forward),
        row("down_fwd", 2880, 2880, Forward),
        row("down_dgrad", 2880, 2880, Forward),
        row("gate_up_dgrad", 5760, 2880, Forward),
        row("gate_up_wgrad", 2880, 5760, Weight),
        row("down_wgrad", 2880, 2880, Weight),
    ]
};

/// The kernel that the original program looks for in both images, by direction: launched with the other's arguments, a kernel
/// reads and writes where it must not.
const fn kernel(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "_grouped_fp8_persistent_gemm_kernel",
        Direction::Weight => "_grouped_variable_k_gemm_kernel",
    }
}

impl Builtin {
    /// The site of that name.
    pub fn find(name: &str) -> Option<&'static Builtin> {
        BUILTIN.iter().find(|site| site.name == name)
    }

    /// The site.
    ///
    /// # Errors
    /// None with the sites as they are; a test holds that.
    pub fn site(&self, device: DeviceFacts) -> Result<Site, String> {
        Site::parse(&self.text(), self.name, Path::new(""), device)
    }

    /// As a site file: what a user who needs another shape starts from.
    pub fn text(&self) -> String {
        let Builtin { name, d1, d2, direction } = self;
        let (dims, lhs, rhs, out, scalars) = match direction {
            Direction::Forward => (
                format!("K = {d1}\nN = {d2}\n"),
                "M\", \"K",
                "E\", \"N\", \"K",
                "M\", \"N",
                ["N", "K", "K", "N*K", "K", "N", "1"],
            ),
            Direction::Weight => (
                format!("D1 = {d1}\nD2 = {d2}\n"),
                "M\", \"D1",
                "M\", \"D2",
                "E\", \"D1\", \"D2",
                ["D1", "D2", "D1", "D2", "D1*D2", "D2", "1"],
            ),
        };
        let flop = if *direction == Direction::Forward { "2*M*N*K" } else { "2*M*D1*D2" };
        let mut text = format!(
            "name = \"{name}\"\nkernel = \"{}\"\ngrid = [\"cu_count\", 1, 1]\nblock = [512, 1, 1]\n\
             dynamic-lds = 65536\nflop = \"{flop}\"\n\n[dims]\nM = {M}\nE = {E}\n{dims}",
            kernel(*direction)
        );
        // One generator draws a byte for each element of the left operand, then of the right one.
        let drawn = "{ kind = \"bytes\", mask = 0x3f }";
        let ones = "{ kind = \"constant\", value = 1.0 }";
        let offsets = "{ kind = \"range\", start = 0, step = \"M/E\" }";
        let mut offset = 0;
        let mut argument = |size: u32, name: &str, what: String| {
            text.push_str(&format!("\n[[arg]]\nname = \"{name}\"\noffset = {offset}\n{what}\n"));
            offset += size;
        };
        let buffer = |dtype: &str, shape: &str, fill: Option<&str>| {
            let fill = fill.map(|fill| format!("\nfill = {fill}")).unwrap_or_default();
            format!("dtype = \"{dtype}\"\nshape = [\"{shape}\"]{fill}")
        };
        argument(8, "lhs", buffer("fp8_e4m3", lhs, Some(drawn)));
        argument(8, "rhs", buffer("fp8_e4m3", rhs, Some(drawn)));
        argument(8, "out", buffer("bf16", out, None));
        argument(8, "lhs_scale", buffer("f32", "E", Some(ones)));
        argument(8, "rhs_scale", buffer("f32", "E", Some(ones)));
        argument(8, "group_offs", buffer("i64", "E + 1", Some(offsets)));
        let names = ["dim1", "dim2", "stride_lhs", "stride_rhs", "stride_out0", "stride_out1", "stride_out2"];
        argument(4, "G", "type = \"i32\"\nvalue = \"E\"".into());
        for (name, value) in names.iter().zip(scalars) {
            argument(4, name, format!("type = \"i32\"\nvalue = \"{value}\""));
        }
        argument(8, "scratch0", "null = true".into());
        argument(8, "scratch1", "null = true".into());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::ArgumentValue;
    use super::*;

    const MI355X: DeviceFacts = DeviceFacts { compute_units: 256, wave_size: 64 };

    #[test]
    fn sizes_are_those_of_the_original_program() {
        // Decimal megabytes and operations, computed by hand from the shapes.
        for (name, lhs, rhs, out, flop) in [
            ("gate_up_fwd", 377_487_360, 530_841_600, 1_509_949_440, 4_348_654_387_200.0),
            ("down_fwd", 377_487_360, 265_420_800, 754_974_720, 2_174_327_193_600.0),
            ("gate_up_dgrad", 754_974_720, 530_841_600, 754_974_720, 4_348_654_387_200.0),
            ("gate_up_wgrad", 377_487_360, 754_974_720, 1_061_683_200, 4_348_654_387_200.0),
            ("down_wgrad", 377_487_360, 377_487_360, 530_841_600, 2_174_327_193_600.0),
        ] {
            let site = Builtin::find(name).expect(name).site(MI355X).expect(name);
            let bytes: Vec<u64> = site.buffers().map(|(_, buffer)| buffer.bytes).collect();
            assert_eq!(bytes[..3], [lhs, rhs, out], "{name}");
            assert_eq!(bytes[3..], [128, 128, 264], "{name}");
            assert_eq!(site.flop, Some(flop), "{name}");
            assert_eq!((site.grid, site.block, site.dynamic_lds_bytes), ([256, 1, 1], [512, 1, 1], 65536));
        }
    }

    #[test]
    fn arguments_take_96_bytes_in_the_original_order() {
        let forward = Builtin::find("gate_up_fwd").expect("there").site(MI355X).expect("valid");
        let offsets: Vec<u64> = forward.arguments.iter().filter_map(|argument| argument.offset).collect();
        assert_eq!(offsets, [0, 8, 16, 24, 32, 40, 48, 52, 56, 60, 64, 68, 72, 76, 80, 88]);
        let scalars = |site: &Site| -> Vec<i32> {
            let values = site.arguments.iter().filter_map(|argument| match &argument.value {
                ArgumentValue::Bytes(bytes) => Some(i32::from_le_bytes(bytes[..].try_into().expect("four bytes"))),
                _ => None,
            });
            values.collect()
        };
        assert_eq!(scalars(&forward), [32, 5760, 2880, 2880, 5760 * 2880, 2880, 5760, 1]);
        assert_eq!(forward.kernels, ["_grouped_fp8_persistent_gemm_kernel"]);
        let weight = Builtin::find("gate_up_wgrad").expect("there").site(MI355X).expect("valid");
        assert_eq!(weight.kernels, ["_grouped_variable_k_gemm_kernel"]);
        assert_eq!(scalars(&weight), [32, 2880, 5760, 2880, 5760, 2880 * 5760, 5760, 1]);
    }
}
