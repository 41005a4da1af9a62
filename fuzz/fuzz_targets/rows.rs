//! libFuzzer target: see `cluster-tests/src/parsers/rows.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (cluster_tests::parsers::named("rows").expect("a target of this name").check)(data);
});
