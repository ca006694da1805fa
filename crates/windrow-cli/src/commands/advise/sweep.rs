//! Which options are tried, which of them are on the frontier, and which are recommended.
//!
//! A choice is a place on each of five ladders ([`ladders`]): T, c, segment limit, placement of values, filter bits.
//! The search ([`search`]) begins with the default and with a few trees of other kinds. It tries one ladder after
//! the other, and takes the choice whose average operation costs least, until no ladder improves it. For a large
//! store, the search simulates a part of the entries. Then the default, the best, and the frontier are simulated
//! with all entries ([`trees`]), and the advice follows from these ([`conclude`]).
//!
//! I1. The search is deterministic: neither clocks nor threads influence the choice.
//! I2. The recommendation is the default, or on the frontier.
//!
//! Concurrency: that of [`trees`].

mod candidate;
mod conclude;
mod ladders;
mod search;
mod trees;

use serde::Serialize;
use windrow::{KeyspaceOptions, Result};

pub(super) use self::candidate::{Bounds, Candidate};
use self::conclude::Conclusion;
pub(super) use self::conclude::WORTHWHILE;
pub(super) use self::ladders::Free;
use self::ladders::Ladders;
use self::search::Search;
use self::trees::Trees;
use crate::amounts::whole;
use crate::commands::cost::Demand;

/// The search simulates at most this many memtables of entries. Only the finalists are simulated with all.
const SEARCHED_MEMTABLES: f64 = 200.0;

/// What the advice is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) demand: &'a Demand,
    /// The default.
    pub(super) base: &'a KeyspaceOptions,
    /// The present options of the store, if they are known.
    pub(super) now: Option<&'a KeyspaceOptions>,
    pub(super) free: Free,
    pub(super) bounds: Bounds,
    /// Whether the settings one step away from the recommendation are wanted; they take further simulations.
    pub(super) wants_neighbours: bool,
}

/// The advice.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Advice {
    /// Whether the recommendation is to keep the default.
    pub(super) keep_default: bool,
    /// The fraction of the default's cost that the recommendation saves, or the best one if the default is kept.
    pub(super) saving: f64,
    pub(super) recommended: Candidate,
    pub(super) default: Candidate,
    /// The present options of the store, if they are known.
    pub(super) now: Option<Candidate>,
    /// Whether the default keeps to the bounds.
    pub(super) default_is_allowed: bool,
    /// The settings that no other beats in writes, reads and space, the cheapest writes first.
    pub(super) frontier: Vec<Candidate>,
    /// Settings that were compared, and how many of them broke a bound.
    pub(super) compared: usize,
    pub(super) left_out: usize,
    /// The settings one step away from the recommendation: the option, and its candidate. Empty unless wanted.
    #[serde(skip)]
    pub(super) neighbours: Vec<(&'static str, Candidate)>,
}

/// Searches the best options. It calls `tick` after each simulated tree.
///
/// # Errors
/// `InvalidArgument` if no setting keeps the bounds.
pub(super) fn advise(request: &Request<'_>, tick: &(dyn Fn() + Sync)) -> Result<Advice> {
    let Request { demand, base, .. } = *request;
    let ladders = Ladders::new(demand, base, request.free);
    let searched = SEARCHED_MEMTABLES * base.memtable_bytes as f64 / demand.entry_bytes();
    let keys = demand.keys.min(whole(searched).max(2));
    let mut trees = Trees::new(demand, keys, &ladders, tick);
    let start = ladders.start();
    trees.simulate(&[start])?;
    let limits = request.bounds.limits(trees.candidate(&start).as_ref());
    let mut search = Search {
        ladders: &ladders,
        trees: &mut trees,
        limits,
    };
    search.descend()?;
    let conclusion = Conclusion {
        request,
        ladders: &ladders,
        tick,
    };
    conclusion.advice(trees)
}

#[cfg(test)]
mod tests;
