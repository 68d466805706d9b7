//! Distances in units in the last place: how many values of a type lie between two.

use super::{Class, Dtype, Kind};

impl Dtype {
    /// The place of an element in the order of all values of its type: neighbours differ by 1, both zeros are at 0,
    /// infinity comes after the largest number. None for NaN.
    pub fn ulp_index(self, bits: u64) -> Option<i64> {
        if self.classify(bits) == Class::Nan {
            return None;
        }
        Some(match self.facts().kind {
            Kind::Float(format) => {
                let magnitude = (bits & (format.sign_bit() - 1)) as i64;
                if bits & format.sign_bit() == 0 { magnitude } else { -magnitude }
            }
            Kind::Signed => self.signed(bits),
            Kind::Scale | Kind::Unsigned => bits as i64,
        })
    }

    /// How many steps from neighbour to neighbour lead from one element to the other. None with NaN.
    pub fn ulp_distance(self, a: u64, b: u64) -> Option<u64> {
        Some(self.ulp_index(a)?.abs_diff(self.ulp_index(b)?))
    }
}
