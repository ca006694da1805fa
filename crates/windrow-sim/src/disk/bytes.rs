//! The bytes of a file as shared sectors, so that a copy of a whole disk costs almost nothing.

use std::sync::Arc;

/// What a disk writes in one step: all of it or nothing.
pub const SECTOR_BYTES: usize = 512;

/// One sector.
pub(super) type Sector = Arc<[u8; SECTOR_BYTES]>;

/// A file's bytes. A sector that was never written is zero. Bytes of the last sector at and after
/// `length` are zero.
#[derive(Debug, Clone, Default)]
pub(super) struct Bytes {
    sectors: Vec<Option<Sector>>,
    length: u64,
}

impl Bytes {
    pub(super) fn from_slice(bytes: &[u8]) -> Self {
        let mut result = Self::default();
        result.set_length(bytes.len() as u64);
        for (index, chunk) in bytes.chunks(SECTOR_BYTES).enumerate() {
            let mut sector = [0; SECTOR_BYTES];
            sector[..chunk.len()].copy_from_slice(chunk);
            result.set_sector(index, Arc::new(sector));
        }
        result
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Grows the file with zeroes, or cuts it.
    pub(super) fn set_length(&mut self, length: u64) {
        let count = to_index(length.div_ceil(SECTOR_BYTES as u64));
        let used = to_index(length % SECTOR_BYTES as u64);
        self.sectors.resize(count, None);
        if length < self.length
            && used != 0
            && let Some(Some(last)) = self.sectors.last_mut()
        {
            Arc::make_mut(last)[used..].fill(0);
        }
        self.length = length;
    }

    /// Replaces sector `index`. A sector beyond the length is lost, as on a disk where the growth of
    /// the file never became durable.
    pub(super) fn set_sector(&mut self, index: usize, mut sector: Sector) {
        let Some(slot) = self.sectors.get_mut(index) else {
            return;
        };
        let used = self.length - (index * SECTOR_BYTES) as u64;
        if used < SECTOR_BYTES as u64 && sector[to_index(used)..].iter().any(|byte| *byte != 0) {
            Arc::make_mut(&mut sector)[to_index(used)..].fill(0);
        }
        *slot = Some(sector);
    }

    /// Writes, and grows if necessary. Returns each changed sector as it is afterwards.
    pub(super) fn write(&mut self, mut offset: u64, mut bytes: &[u8]) -> Vec<(usize, Sector)> {
        let end = offset + bytes.len() as u64;
        if end > self.length {
            self.set_length(end);
        }
        let mut touched = Vec::new();
        while !bytes.is_empty() {
            let index = to_index(offset / SECTOR_BYTES as u64);
            let start = to_index(offset % SECTOR_BYTES as u64);
            let count = bytes.len().min(SECTOR_BYTES - start);
            let sector = self.sectors[index].get_or_insert_with(|| Arc::new([0; SECTOR_BYTES]));
            Arc::make_mut(sector)[start..start + count].copy_from_slice(&bytes[..count]);
            touched.push((index, Arc::clone(sector)));
            bytes = &bytes[count..];
            offset += count as u64;
        }
        touched
    }

    /// Reads up to the length; returns how many bytes.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let available = to_index(self.length.saturating_sub(offset)).min(buffer.len());
        let mut done = 0;
        while done < available {
            let position = offset + done as u64;
            let index = to_index(position / SECTOR_BYTES as u64);
            let start = to_index(position % SECTOR_BYTES as u64);
            let count = (available - done).min(SECTOR_BYTES - start);
            let target = &mut buffer[done..done + count];
            match &self.sectors[index] {
                Some(sector) => target.copy_from_slice(&sector[start..start + count]),
                None => target.fill(0),
            }
            done += count;
        }
        available
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; to_index(self.length)];
        self.read(0, &mut bytes);
        bytes
    }
}

fn to_index(value: u64) -> usize {
    usize::try_from(value).expect("a simulated file fits in memory")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_return_what_was_written() {
        let mut bytes = Bytes::default();
        bytes.write(500, b"across the border of a sector");
        assert_eq!(bytes.length(), 529);
        let mut buffer = [1; 40];
        assert_eq!(bytes.read(490, &mut buffer), 39);
        assert_eq!(&buffer[..10], &[0; 10]);
        assert_eq!(&buffer[10..39], b"across the border of a sector");
        assert_eq!(bytes.read(529, &mut buffer), 0);
        assert_eq!(Bytes::from_slice(&bytes.to_vec()).to_vec(), bytes.to_vec());
    }

    #[test]
    fn cut_bytes_come_back_as_zeroes() {
        let mut bytes = Bytes::from_slice(&[7; 1000]);
        bytes.set_length(100);
        bytes.set_length(1000);
        let mut expected = vec![7; 100];
        expected.resize(1000, 0);
        assert_eq!(bytes.to_vec(), expected);
    }

    #[test]
    fn copies_are_independent() {
        let mut bytes = Bytes::from_slice(&[1; 2000]);
        let copy = bytes.clone();
        bytes.write(0, &[2; 600]);
        assert_eq!(copy.to_vec(), [1; 2000]);
    }

    #[test]
    fn a_sector_beyond_the_length_is_lost_and_one_across_it_is_cut() {
        let mut bytes = Bytes::from_slice(&[1; 600]);
        bytes.set_sector(1, Arc::new([5; SECTOR_BYTES]));
        bytes.set_sector(2, Arc::new([5; SECTOR_BYTES]));
        bytes.set_length(2000);
        let content = bytes.to_vec();
        assert_eq!(&content[512..600], &[5; 88]);
        assert_eq!(&content[600..], &[0; 1400]);
    }
}
