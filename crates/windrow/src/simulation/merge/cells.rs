//! Cells: the parts of the key space in which every segment of a merge lies evenly.

use crate::simulation::key_space::{KeySpace, Segment, Span};
use crate::simulation::mass::Mass;

/// The keys that any of `sources`, newest first, has an entry of.
pub(crate) fn merged_entries(key_space: &KeySpace, sources: &[&Segment]) -> f64 {
    let mut entries = 0.0;
    let begins = &mut Vec::new();
    let purpose = Purpose::Count;
    for_each_cell(key_space, sources, begins, purpose, |span, _, masses| {
        entries += key_space.count(masses, span.width()).entries;
    });
    entries
}

/// What masses are merged for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    /// To count entries. Range tombstones cover nothing, and nothing expires.
    Count,
    /// To write them anew. What has expired at `now` becomes tombstones.
    Rewrite { now: f64 },
}

/// Calls `visit` for each cell of `sources`, newest first, with the sources that overlap it and the mass of their
/// merge there. Cells begin at each of `begins`, too, which ascend.
pub(super) fn for_each_cell(
    key_space: &KeySpace,
    sources: &[&Segment],
    begins: &mut Vec<u64>,
    purpose: Purpose,
    mut visit: impl FnMut(Span, &[usize], &mut [Mass]),
) {
    for source in sources {
        begins.push(source.span.smallest);
        begins.extend(source.span.largest.checked_add(1));
    }
    begins.sort_unstable();
    begins.dedup();
    let mut by_begin: Vec<usize> = (0..sources.len()).collect();
    by_begin.sort_by_key(|&source| sources[source].span.smallest);
    let mut next_sources = by_begin.into_iter().peekable();
    // The sources that overlap the present cell, newest first.
    let mut active: Vec<usize> = Vec::new();
    let mut masses = vec![Mass::default(); key_space.classes.len()];
    for (position, &smallest) in begins.iter().enumerate() {
        let next = begins.get(position + 1);
        let largest = next.map_or(u64::MAX, |next| next - 1);
        active.retain(|&source| sources[source].span.largest >= smallest);
        while let Some(source) =
            next_sources.next_if(|&source| sources[source].span.smallest <= smallest)
        {
            let place = active.partition_point(|&other| other < source);
            active.insert(place, source);
        }
        if active.is_empty() {
            continue;
        }
        let span = Span { smallest, largest };
        let covering = active.iter().map(|&source| sources[source]);
        merge_cell(key_space, covering, span, purpose, &mut masses);
        visit(span, &active, &mut masses);
    }
}

/// Sets `masses` to the merge of the segments `covering` a cell, newest first.
fn merge_cell<'s>(
    key_space: &KeySpace,
    covering: impl Iterator<Item = &'s Segment>,
    span: Span,
    purpose: Purpose,
    masses: &mut [Mass],
) {
    masses.fill(Mass::default());
    let width = span.width();
    let mut range_deletes = 0.0;
    for segment in covering {
        let part = width / segment.span.width();
        let covered = key_space.covered(range_deletes);
        let (own_ranges, now) = match purpose {
            Purpose::Rewrite { now } => (segment.range_deletes, now),
            Purpose::Count => (0.0, f64::NEG_INFINITY),
        };
        range_deletes += own_ranges;
        let covered_below = key_space.covered(own_ranges);
        let classes = key_space.classes.iter().zip(&segment.masses);
        for (mass, (class, own)) in masses.iter_mut().zip(classes) {
            let mut own = own.part(part);
            // Before the sources come together: the estimate of when entries expire is one of entries of about one age.
            own.expire(now);
            mass.put_over(own, class.keys * width, covered, covered_below);
        }
    }
}
