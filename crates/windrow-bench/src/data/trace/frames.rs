//! Consecutive frames of zstd and LZ4 as one stream of their contents.
//!
//! 1. Skippable frames are skipped, also before the first frame. Bytes after a frame that are no frame are an error.
//! 2. The stream ends at the end of a frame. An end anywhere else is an error.

use std::io::{self, BufRead, Cursor, ErrorKind, Read};
use std::mem;

use lz4_flex::frame::FrameDecoder as Lz4Decoder;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder as ZstdDecoder};

/// The kind of a frame, by its magic number.
#[derive(Debug, Clone, Copy)]
enum Frame {
    Zstd,
    Lz4,
    Skipped,
}

impl Frame {
    fn of(magic: [u8; 4]) -> Option<Self> {
        match u32::from_le_bytes(magic) {
            0xfd2f_b528 => Some(Self::Zstd),
            0x184d_2204 => Some(Self::Lz4),
            0x184d_2a50..=0x184d_2a5f => Some(Self::Skipped),
            _ => None,
        }
    }
}

/// Whether a file of frames begins with these bytes.
pub(super) fn are_frames(start: &[u8]) -> bool {
    start
        .first_chunk()
        .is_some_and(|magic| Frame::of(*magic).is_some())
}

/// The contents of frames.
pub(super) struct Frames {
    /// The current frame.
    frame: Option<Frame>,
    zstd: ZstdDecoder,
    /// The decoder of the current frame. It owns the input of all frames.
    lz4: Lz4Decoder<Source>,
}

impl Frames {
    /// The frames that `reader` has.
    pub(super) fn new(reader: impl BufRead + Send + 'static) -> Self {
        Self {
            frame: None,
            zstd: ZstdDecoder::new(),
            lz4: Lz4Decoder::new(Source::new(reader)),
        }
    }

    /// Begins the next frame; `false` at the end.
    fn begin(&mut self) -> io::Result<bool> {
        self.frame = None;
        let source = self.lz4.get_mut();
        if source.reader.fill_buf()?.is_empty() {
            return Ok(false); // 2
        }
        let mut magic = [0; 4];
        source.reader.read_exact(&mut magic)?;
        source.magic = Cursor::new(magic);
        self.frame = Frame::of(magic);
        match self.frame {
            Some(Frame::Zstd) => self.zstd.reset(source).map_err(io::Error::other)?,
            Some(Frame::Lz4) => self.lz4 = Lz4Decoder::new(mem::take(source)),
            Some(Frame::Skipped) => source.skip()?,
            None => return Err(damaged("the bytes after a frame are no frame")),
        }
        Ok(true)
    }

    /// More bytes of a zstd frame; none at its end.
    fn read_zstd(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.zstd.can_collect() == 0 && !self.zstd.is_finished() {
            let one = BlockDecodingStrategy::UptoBlocks(1);
            let decoded = self.zstd.decode_blocks(self.lz4.get_mut(), one);
            decoded.map_err(io::Error::other)?;
        }
        let read = self.zstd.read(into)?;
        let reported = self.zstd.get_checksum_from_data().filter(|_| read == 0);
        if reported.is_some() && reported != self.zstd.get_calculated_checksum() {
            return Err(damaged("a frame has a wrong checksum"));
        }
        Ok(read)
    }

    /// More bytes of an LZ4 frame; none at its end.
    fn read_lz4(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.lz4.read(into)?;
        // The decoder takes the end of its input for the end of the frame. // 2
        if read == 0 && self.lz4.get_ref().has_ended {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(read)
    }
}

impl Read for Frames {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let read = match self.frame {
                Some(Frame::Zstd) => self.read_zstd(into)?,
                Some(Frame::Lz4) => self.read_lz4(into)?,
                Some(Frame::Skipped) | None => 0,
            };
            if read > 0 || !self.begin()? {
                return Ok(read);
            }
        }
    }
}

/// The input of frames. Decoders begin with the magic number, which was read before.
struct Source {
    magic: Cursor<[u8; 4]>,
    reader: Box<dyn BufRead + Send>,
    /// The last read found the end.
    has_ended: bool,
}

impl Source {
    fn new(reader: impl BufRead + Send + 'static) -> Self {
        Self {
            magic: Cursor::default(),
            reader: Box::new(reader),
            has_ended: false,
        }
    }

    /// Skips a skippable frame.
    fn skip(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4];
        self.reader.read_exact(&mut bytes)?;
        let bytes = u64::from(u32::from_le_bytes(bytes));
        let mut skipped = self.reader.by_ref().take(bytes);
        if io::copy(&mut skipped, &mut io::sink())? < bytes {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}

impl Default for Source {
    fn default() -> Self {
        Self::new(io::empty())
    }
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = match self.magic.read(into)? {
            0 => self.reader.read(into)?,
            read => read,
        };
        self.has_ended = read == 0;
        Ok(read)
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
