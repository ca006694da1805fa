//! Which outputs of jobs stay in the page cache.
//!
//! Readers find their hot data there. A job that merely moves data must not change what is hot: an output takes the
//! place of its inputs. What was resident stays resident under its new name, and what was cold leaves again. If all data
//! fit in memory, everything is resident, and everything stays.

/// Whether a written piece stays in the page cache, if the inputs for its bytes had `read` bytes, `resident` of them in
/// the page cache.
///
/// An output without inputs comes from memory, where it was hot until now: it stays.
pub(crate) fn stays_in_page_cache(read: u64, resident: u64) -> bool {
    resident >= read.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_as_hot_as_its_inputs() {
        for (read, resident, stays) in [
            (0, 0, true), // A flush.
            (1, 0, false),
            (1, 1, true),
            (1000, 499, false),
            (1000, 500, true),
            (1000, 1000, true),
        ] {
            assert_eq!(
                stays_in_page_cache(read, resident),
                stays,
                "{resident} of {read}"
            );
        }
    }
}
