//! How much the policy rewrites, on a small copy of the load that the bench measures.

use super::model::{Key, Model};
use crate::base::Kind;
use crate::options::KeyspaceOptions;

/// The bench's 5 million entries of 116 bytes, and all sizes with them, divided by this.
const SCALE: usize = 50;
const KEYS: u64 = 5_000_000 / SCALE as u64;

/// A reproducible random sequence (SplitMix64).
struct Random(u64);

impl Random {
    fn key(&mut self) -> Key {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Key::try_from((mixed ^ (mixed >> 31)) % KEYS).unwrap()
    }
}

#[test]
fn explore() {
    for runs in [4, 6, 8] {
        for per_memtable in [400_000, 430_000, 480_000] {
            let options = KeyspaceOptions {
                level0_runs: runs,
                memtable_bytes: (64 << 20) / SCALE,
                base_bytes: (256 << 20) / SCALE as u64,
                file_bytes: (16 << 20) / SCALE as u64,
                ..KeyspaceOptions::default()
            };
            let mut model = Model::new(options, 116);
            let mut random = Random(7);
            let given = KEYS * 116;
            for phase in 0..3 {
                let before = (model.flushed, model.merged);
                let mut left = KEYS as usize;
                while left > 0 {
                    let count = left.min(per_memtable / SCALE);
                    left -= count;
                    model.flush((0..count).map(|_| (random.key(), Kind::Value)));
                    model.settle();
                }
                println!(
                    "runs {runs} per {per_memtable} phase {phase}: flush {:.2} merge {:.2} {:?}",
                    (model.flushed - before.0) as f64 / given as f64,
                    (model.merged - before.1) as f64 / given as f64,
                    {
                        let (r, b) = model.shape();
                        (
                            r,
                            b.iter().map(|b| b * SCALE as u64 >> 20).collect::<Vec<_>>(),
                        )
                    },
                );
            }
        }
    }
}
