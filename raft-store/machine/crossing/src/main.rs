//! Runs the crossing for as long as it is told to.

fn main() {}
