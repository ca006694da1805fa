//! The command line of Windrow.
fn main() {}
