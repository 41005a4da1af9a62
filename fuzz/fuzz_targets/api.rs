//! libFuzzer target: see `cluster-tests/parsers/src/api.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (parser_fuzzing::named("api").expect("a target of this name").check)(data);
});
