//! The `swiftwater` command: argument parsing and printing only.

fn main() {}
