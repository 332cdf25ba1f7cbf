//! Numbers of a generated table as the bytes of a literal, lowest byte first: the compiler reads
//! one literal a row instead of an expression a number.

/// 32-bit numbers.
#[derive(Debug)]
pub struct Numbers32(pub &'static [u8]);

impl Numbers32 {
    /// The number at a position.
    pub fn get(&self, position: usize) -> Option<u32> {
        self.0.as_chunks().0.get(position).map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// All numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
    }
}

/// 16-bit numbers.
#[derive(Debug)]
pub struct Numbers16(pub &'static [u8]);

impl Numbers16 {
    /// The number at a position.
    #[inline]
    pub fn get(&self, position: usize) -> Option<u16> {
        self.0.as_chunks().0.get(position).map(|bytes| u16::from_le_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_byte_stands_first() {
        let words = Numbers32(b"\x01\x02\x03\x04\xff\x00\x00\x00");
        assert_eq!(words.iter().collect::<Vec<_>>(), [0x0403_0201, 0xff]);
        assert_eq!((words.get(1), words.get(2)), (Some(0xff), None));
        let halves = Numbers16(b"\x01\x02\xff\xff");
        assert_eq!((halves.get(0), halves.get(1), halves.get(2)), (Some(0x0201), Some(u16::MAX), None));
    }
}
