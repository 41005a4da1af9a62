//! libFuzzer target: see `cluster-tests/parsers/src/frames.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (parser_fuzzing::named("frames").expect("a target of this name").check)(data);
});
