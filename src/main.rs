//! coax
fn main() {}
