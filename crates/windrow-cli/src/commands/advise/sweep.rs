//! Which options are tried, which of them nothing beats, and which is recommended.
//!
//! A choice is a place on each of five ladders ([`ladders`]): T, c, segment limit, placement of values, filter bits.
//! The search ([`search`]) begins with the default and with a few trees of other kinds, and goes down the ladders
//! one after the other, to the choice whose average operation costs least, until none of them helps any more. A
//! large store is searched for with a part of its entries; then the default, the best, and the frontier are
//! simulated with all of them ([`trees`]), and decide ([`conclude`]).
//!
//! I1. The search is the same each time: neither clocks nor threads have a part in what is chosen.
//! I2. What is recommended is the default, or on the frontier.
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
use super::demand::Demand;
use crate::amounts::whole;

/// A tree of more bytes than this many memtables is searched for with so many, and only those that come into
/// question are then simulated with all.
const SEARCHED_MEMTABLES: f64 = 200.0;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) demand: &'a Demand,
    /// The default.
    pub(super) base: &'a KeyspaceOptions,
    /// What the store has now, where it tells.
    pub(super) now: Option<&'a KeyspaceOptions>,
    pub(super) free: Free,
    pub(super) bounds: Bounds,
    /// Whether what is one step away from the recommendation is to be told, too, which takes simulations of its own.
    pub(super) wants_neighbours: bool,
}

/// What comes out.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Advice {
    /// Whether the default is to be kept.
    pub(super) keep_default: bool,
    /// The part of the default's cost that what is recommended saves, or the best where the default is kept.
    pub(super) saving: f64,
    pub(super) recommended: Candidate,
    pub(super) default: Candidate,
    /// What the store has now, where it tells.
    pub(super) now: Option<Candidate>,
    /// Whether the default keeps to the bounds.
    pub(super) default_is_allowed: bool,
    /// What nothing beats in writes, reads and space, the cheapest writes first.
    pub(super) frontier: Vec<Candidate>,
    /// Settings that were compared, and how many of them broke a bound.
    pub(super) compared: usize,
    pub(super) left_out: usize,
    /// One step away from what is recommended: the option, and its candidate. Empty unless they are wanted.
    #[serde(skip)]
    pub(super) neighbours: Vec<(&'static str, Candidate)>,
}

/// Searches what is best; `tick` is called for each tree that was simulated.
///
/// # Errors
/// `InvalidArgument` where nothing keeps to the bounds.
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
