//! libFuzzer target: see `cluster-tests/parsers/src/backup.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    (parser_fuzzing::named("backup").expect("a target of this name").check)(data);
});
