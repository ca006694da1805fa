//! How many keys of a segment that is appended the older ones of its file have, too.
//!
//! What is superseded there takes room, and nothing else tells how much: an append reads none of it. So
//! some of the keys, whose hashes are known, are asked of the filters that the open table has in memory;
//! how many of them these let pass by mistake is known from their size, and taken off.
//!
//! Concurrency: none; tables are immutable.

use super::read::Table;
use crate::filter::keys_there;

/// About so many keys are asked, which tells their part to within two percent.
const ASKED: usize = 1024;

/// About how many of the keys with these hashes `older` has; all where its filters tell too little.
pub(super) fn keys_in(older: &Table, hashes: &[u64]) -> u64 {
    let step = (hashes.len() / ASKED).max(1);
    let (mut asked, mut passed) = (0_u64, 0_u64);
    for &hash in hashes.iter().step_by(step) {
        asked += 1;
        passed += u64::from(older.may_contain(hash));
    }
    let there = keys_there(asked as f64, passed as f64, older.filter_rates());
    there.saturating_mul(hashes.len() as u64) / asked.max(1)
}
