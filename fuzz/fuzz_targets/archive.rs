//! The target `archive` of `windrow_sim::hostile`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use windrow_sim::hostile::run_target;

fuzz_target!(|bytes: &[u8]| {
    run_target("archive", bytes);
});
