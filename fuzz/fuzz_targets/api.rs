//! libFuzzer target: see `cluster-tests/src/parsers/door.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (cluster_tests::parsers::named("door").expect("a target of this name").check)(data);
});
