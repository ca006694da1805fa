//! Expired entries: whole files that go, and files that are rewritten.

use super::notation::{KIB, check_plans};
use crate::options::{KeyspaceOptions, Preset};

/// Level 1 holds 100 KiB; two runs make level 0 due. The option is the bound on space amplification.
fn options(max_space_amp: &str) -> KeyspaceOptions {
    KeyspaceOptions {
        base_bytes: 100 * KIB,
        file_bytes: KIB,
        level0_runs: 3,
        max_space_amp: max_space_amp.parse().unwrap(),
        ..KeyspaceOptions::preset(Preset::Leveling)
    }
}

const DROPS: &str = "
files that expired go together [inf] :: | 1:0-4/4+expired=4 2:5-9/4 3:10-19/4+expired=4 => drop L1: 1 3
the deepest level goes first [inf] :: | 2:0-9/4+expired=4 | 1:0-9/40+expired=40 => drop L2: 1
older data keeps a file [inf] :: | 2:0-9/4+expired=4 | 1:0-9/40 => idle
older data beside it does not [inf] :: | 2:10-19/4+expired=4 | 1:0-9/40 => drop L1: 2
an older run keeps a run [inf] :: 2:0-9/4+expired=4 1:5-12/4 => idle
a newer run does not [inf] :: 2:0-9/4 1:5-12/4+expired=4 => drop L0: 1
a busy file stays [inf] :: | 1:0-4/4+expired=4+busy => idle
values in value logs must be listed [inf] :: | 1:0-4/4+expired=9+valuelogs=5 => idle
";

#[test]
fn files_of_expired_entries_go() {
    check_plans(DROPS, options);
}

const REWRITES: &str = "
few expired entries stay [2] :: | 1:0-9/12+expired=3 2:10-19/10+expired=4 => idle
many are rewritten, most of a file first [2] :: | 1:0-9/12+expired=4 2:10-19/10+expired=4 3:20-29/1
    => rewrite expired of L1 2 over 10-19
less space, fewer expired entries [1.5] :: | 1:0-9/12+expired=3 2:10-19/10+expired=4
    => rewrite expired of L1 2 over 10-19
without a bound they stay [inf] :: | 1:0-9/12+expired=11 => idle
values in value logs count [2] :: | 1:0-9/4+expired=9+valuelogs=6 => rewrite expired of L1 1 over 0-9
values elsewhere are live [2] :: | 1:0-9/4+expired=9+valuelogs=6 2:10-19/90 => idle
a busy file is as good as rewritten [2] :: | 1:0-9/12+expired=11+busy 2:10-19/4+expired=1 => idle
a deeper level is rewritten where it is [2] :: | 2:0-9/4 | 1:0-9/40+expired=30
    => rewrite expired of L2 1 over 0-9
level 0 goes down [2] :: 2:0-9/4+expired=3 | 1:0-9/2 => compact L0 2 with 1 over 0-9
level 0 goes first if it has the larger part [2] :: 2:0-9/8+expired=7 | 1:0-1/1 3:20-29/12+expired=8
    => compact L0 2 with 1 over 0-9
a deeper file goes first if it has the larger part [2] :: 2:0-9/8+expired=7 | 1:0-1/1 3:20-29/12+expired=10
    => rewrite expired of L1 3 over 20-29
what level 0 overlaps counts [2] :: 2:0-9/8+expired=7 | 1:0-9/12 3:20-29/12+expired=8
    => rewrite expired of L1 3 over 20-29
the first of about equal parts [2] :: | 1:0-9/16+expired=9 2:10-19/16+expired=10
    => rewrite expired of L1 1 over 0-9
the larger part by an eighth [2] :: | 1:0-9/16+expired=9 2:10-19/16+expired=11
    => rewrite expired of L1 2 over 10-19
";

#[test]
fn files_with_many_expired_entries_are_rewritten() {
    check_plans(REWRITES, options);
}
