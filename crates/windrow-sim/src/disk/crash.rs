//! What a power failure does to changes that were not synced.

use crate::Random;

/// What a power failure does to the changes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPolicy {
    /// All of them are lost.
    DropUnsynced,
    /// All of them have reached the disk.
    KeepAll,
    /// The seed applies, loses or tears each change, in any order. A file may have grown without its
    /// bytes, which are then zeroes.
    Random(u64),
    /// Like `Random`, but the bytes by which a file grew may also be garbage.
    RandomWithGarbage(u64),
}

impl CrashPolicy {
    /// Each policy once, with `seed`.
    pub fn all(seed: u64) -> [Self; 4] {
        [
            Self::DropUnsynced,
            Self::KeepAll,
            Self::Random(seed),
            Self::RandomWithGarbage(seed),
        ]
    }
}

/// Decides the fate of each pending change at a power failure.
#[derive(Debug)]
pub(super) struct Fate {
    policy: CrashPolicy,
    random: Random,
    /// Chance in eight that a single change survives.
    survival: u64,
}

impl Fate {
    pub(super) fn new(policy: CrashPolicy) -> Self {
        let mut random = Random::new(match policy {
            CrashPolicy::Random(seed) | CrashPolicy::RandomWithGarbage(seed) => seed,
            CrashPolicy::DropUnsynced | CrashPolicy::KeepAll => 0,
        });
        let survival = *random.pick(&[1, 4, 7]);
        Self {
            policy,
            random,
            survival,
        }
    }

    /// Which of `count` changes survive.
    pub(super) fn survivors(&mut self, count: usize) -> Vec<bool> {
        match self.policy {
            CrashPolicy::DropUnsynced => return vec![false; count],
            CrashPolicy::KeepAll => return vec![true; count],
            CrashPolicy::Random(_) | CrashPolicy::RandomWithGarbage(_) => {}
        }
        match self.random.below(8) {
            0 => vec![false; count],
            1 => vec![true; count],
            // A prefix, in the order in which the changes were made.
            2 | 3 => {
                let kept = self.random.index(count + 1);
                (0..count).map(|index| index < kept).collect()
            }
            // All except one.
            4 => {
                let lost = self.random.index(count.max(1));
                (0..count).map(|index| index != lost).collect()
            }
            _ => (0..count)
                .map(|_| self.random.chance(self.survival, 8))
                .collect(),
        }
    }

    /// Whether bytes by which a file grew may be garbage.
    pub(super) fn leaves_garbage(&self) -> bool {
        matches!(self.policy, CrashPolicy::RandomWithGarbage(_))
    }

    /// The bytes of a sector that turns into garbage; `None` if it does not.
    pub(super) fn garbage<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.random.chance(1, 2).then(|| {
            let mut garbage = [0; N];
            garbage.fill_with(|| self.random.byte());
            garbage
        })
    }
}
