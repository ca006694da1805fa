//! Cells: the parts of the key space in which every segment of a merge lies evenly.

use crate::simulation::key_space::{KeySpace, Segment, Span};
use crate::simulation::mass::Mass;

/// The keys that any of `sources`, newest first, has an entry of.
pub(crate) fn merged_entries(key_space: &KeySpace, sources: &[&Segment]) -> f64 {
    let mut entries = 0.0;
    let begins = &mut Vec::new();
    for_each_cell(key_space, sources, begins, false, |span, _, masses| {
        entries += key_space.count(masses, span.width()).entries;
    });
    entries
}

/// Calls `visit` for each cell of `sources`, newest first, with the sources that overlap it and the mass of their
/// merge there. Cells begin at each of `begins`, too, which ascend. Range tombstones cover nothing unless `covers`.
pub(super) fn for_each_cell(
    key_space: &KeySpace,
    sources: &[&Segment],
    begins: &mut Vec<u64>,
    covers: bool,
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
        merge_cell(key_space, covering, span, covers, &mut masses);
        visit(span, &active, &mut masses);
    }
}

/// Sets `masses` to the merge of the segments `covering` a cell, newest first.
fn merge_cell<'s>(
    key_space: &KeySpace,
    covering: impl Iterator<Item = &'s Segment>,
    span: Span,
    covers: bool,
    masses: &mut [Mass],
) {
    masses.fill(Mass::default());
    let width = span.width();
    let mut range_deletes = 0.0;
    for segment in covering {
        let part = width / segment.span.width();
        let covered = key_space.covered(range_deletes);
        let (own_ranges, covered_below) = if covers {
            let own = segment.range_deletes;
            (own, key_space.covered(own))
        } else {
            (0.0, 0.0)
        };
        range_deletes += own_ranges;
        let classes = key_space.classes.iter().zip(&segment.masses);
        for (mass, (class, own)) in masses.iter_mut().zip(classes) {
            mass.put_over(own.part(part), class.keys * width, covered, covered_below);
        }
    }
}
