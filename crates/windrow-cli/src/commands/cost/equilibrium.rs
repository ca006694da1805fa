//! How many keys a load draws from, so that as many stay stored as there are now.
//!
//! A key is stored while the last that happened to it is a write that neither a delete, nor a range delete, nor its expiry
//! has taken away. Per write, each of U keys is drawn 1/U times, and a range delete covers it with the rate c. A drawn key
//! that does not expire is then stored with the chance d / (d + c) for d = 1/U. One that expires after t writes is stored
//! with that chance times 1 - exp(-(d + c) t).
//!
//! Concurrency: none; no state.

/// The most keys that writes are drawn from, for each stored key. From so many on nearly every write is of a new key.
const KEYS_MAX: f64 = 16.0;

/// The part of the stored keys that must be there.
const ENOUGH: f64 = 0.95;

/// What takes stored keys away.
#[derive(Debug, Clone, Copy)]
pub(super) struct Losses {
    /// The fraction of deletes among the writes.
    pub(super) deletes: f64,
    /// How often a range delete covers a key, per write.
    pub(super) covers: f64,
    /// The fraction of the other writes whose values expire, and after how many writes.
    pub(super) expiring: f64,
    pub(super) time_to_live: f64,
}

impl Losses {
    /// How many keys are stored if writes are drawn from so many.
    fn stored(&self, keys: f64) -> f64 {
        let rate = 1.0 / keys + self.covers;
        let expired = self.expiring * (-rate * self.time_to_live).exp();
        (1.0 - self.deletes) * (1.0 - expired) / rate
    }

    /// How many keys writes must be drawn from, so that `stored` of them are.
    ///
    /// # Errors
    /// The most that can be stored, if that is less.
    pub(super) fn drawn_from(&self, stored: f64) -> Result<f64, f64> {
        let (mut from, mut to) = (stored, stored * KEYS_MAX);
        let most = self.stored(to);
        if most < stored {
            return if most < stored * ENOUGH {
                Err(most)
            } else {
                Ok(to)
            };
        }
        for _ in 0..100 {
            let between = from.midpoint(to);
            if self.stored(between) < stored {
                from = between;
            } else {
                to = between;
            }
        }
        Ok(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Losses = Losses {
        deletes: 0.0,
        covers: 0.0,
        expiring: 0.0,
        time_to_live: 0.0,
    };

    fn from(losses: Losses) -> f64 {
        losses.drawn_from(1000.0).unwrap()
    }

    #[test]
    fn what_goes_comes_again() {
        assert!((from(NONE) - 1000.0).abs() < 1e-6);
        let deletes = Losses {
            deletes: 0.2,
            ..NONE
        };
        assert!((from(deletes) - 1250.0).abs() < 1e-6);
        // Half of the writes are of keys that a range delete has covered.
        let covers = Losses {
            covers: 0.0005,
            ..NONE
        };
        assert!((from(covers) - 2000.0).abs() < 1e-6);
        let life = Losses {
            expiring: 0.5,
            time_to_live: 1000.0,
            ..NONE
        };
        let keys = from(life);
        assert!(keys > 1000.0 && (life.stored(keys) - 1000.0).abs() < 1e-6);
    }

    #[test]
    fn no_more_is_stored_than_lives() {
        let life = |time_to_live| Losses {
            expiring: 1.0,
            time_to_live,
            ..NONE
        };
        assert!((from(life(1000.0)) - 16_000.0).abs() < 1e-6);
        let most = life(500.0).drawn_from(1000.0).unwrap_err();
        assert!((most - 500.0).abs() < 20.0, "{most}");
        let covers = Losses {
            covers: 0.01,
            ..NONE
        };
        let most = covers.drawn_from(1000.0).unwrap_err();
        assert!(most < 100.0, "{most}");
    }
}
