//! The three answers. The last line of stdout and the exit code are both made from this one value.

/// What a command concludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is known, and no trigger rose.
    Ok,
    /// Everything is known, and a trigger rose: a claim about the kernel.
    Regression,
    /// Something is not known: a claim about the answer.
    NotTrustworthy,
}

impl Verdict {
    /// 0, 1 or 2.
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::Ok => 0,
            Verdict::Regression => 1,
            Verdict::NotTrustworthy => 2,
        }
    }

    /// The last line of stdout.
    pub fn line(self) -> &'static str {
        match self {
            Verdict::Ok => "RESULT: OK",
            Verdict::Regression => "RESULT: REGRESSION",
            Verdict::NotTrustworthy => "RESULT: NOT TRUSTWORTHY",
        }
    }
}
