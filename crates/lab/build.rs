//! The scenarios are part of the program: a new file must lead to a new one.

fn main() {
    println!("cargo::rerun-if-changed=../../scenarios");
}
