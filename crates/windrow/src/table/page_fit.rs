//! Fits uncompressed data blocks to the pages of a device.
//!
//! A device and the page cache read whole pages. A block that fills a page exactly costs a cold read one page; the
//! same block at an odd offset costs two. So the writer ends blocks at page boundaries and fills a small gap before a
//! boundary with zeros. A gap that is too large to waste becomes the beginning of the next block, which then
//! covers two pages.

/// The bytes of a page.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The writer fills a gap of at most this fraction of a block.
const GAP_FRACTION: usize = 16;

/// The most payload bytes of a block that begins at `start` of the file and has `trailer` bytes after its payload, so
/// that the block has about `block_bytes` and ends at the nearest page boundary. Without a boundary within half a
/// block of its natural end, it is `block_bytes`.
pub(super) fn payload_max(start: u64, block_bytes: usize, trailer: usize) -> usize {
    let end = start + block_bytes as u64;
    let down = end - end % PAGE_BYTES;
    let boundary = if end - down < PAGE_BYTES / 2 {
        down
    } else {
        down + PAGE_BYTES
    };
    let fits =
        boundary > start + trailer as u64 && 2 * boundary.abs_diff(end) <= block_bytes as u64;
    let payload = boundary.saturating_sub(start + trailer as u64);
    match usize::try_from(payload) {
        Ok(payload) if fits => payload,
        _ => block_bytes,
    }
}

/// The zeros to add to a block that ends at `end` of the file: up to the next page boundary, or none if that is too
/// far.
pub(super) fn padding(end: u64, block_bytes: usize) -> usize {
    let gap = end.next_multiple_of(PAGE_BYTES) - end;
    match usize::try_from(gap) {
        Ok(gap) if gap <= block_bytes / GAP_FRACTION => gap,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_at_the_nearest_page_boundary() {
        let rows = [
            // start, block_bytes, payload
            (0, 4096, 4091),
            (8192, 4096, 4091),
            (3700, 4096, 8192 - 3700 - 5),
            (2047, 4096, 4096 - 2047 - 5),
            (2048, 4096, 8192 - 2048 - 5),
            (0, 16384, 16379),
            (100, 16384, 16384 - 100 - 5),
            (4095, 16384, 20480 - 4095 - 5),
            // Small blocks share a page, and the last of them ends at its boundary.
            (0, 1024, 1024),
            (1029, 1024, 1024),
            (3000, 1024, 4096 - 3000 - 5),
            (3700, 1024, 1024),
            (4093, 128, 128),
        ];
        for (start, block_bytes, payload) in rows {
            assert_eq!(
                payload_max(start, block_bytes, 5),
                payload,
                "{start} {block_bytes}"
            );
        }
    }

    #[test]
    fn only_small_gaps_are_filled() {
        let rows = [
            (4096, 4096, 0),
            (4000, 4096, 96),
            (3840, 4096, 256),
            (3839, 4096, 0),
            (4000, 1024, 0),
            (4090, 128, 6),
            (20_000, 16384, 480),
        ];
        for (end, block_bytes, zeros) in rows {
            assert_eq!(padding(end, block_bytes), zeros, "{end} {block_bytes}");
        }
    }
}
