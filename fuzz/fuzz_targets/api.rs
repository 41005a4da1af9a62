//! libFuzzer target: see `cluster-tests/src/parsers/api.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (cluster_tests::parsers::named("api").expect("a target of this name").check)(data);
});
