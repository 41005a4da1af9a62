//! Has the console put in anew when its built files change.

fn main() {
    println!("cargo::rerun-if-changed=../../console/dist");
}
