//! libFuzzer target: see `cluster-tests/parsers/src/documents.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (parser_fuzzing::named("documents").expect("a target of this name").check)(data);
});
