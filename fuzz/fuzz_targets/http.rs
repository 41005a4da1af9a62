//! libFuzzer target: see `cluster-tests/src/parsers/http.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (cluster_tests::parsers::named("http").expect("a target of this name").check)(data);
});
