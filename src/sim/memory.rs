//! Memory as byte ranges: global allocations separated by gaps, and flat shared or local memory.
//!
//! An access must lie within one allocation; otherwise it is a fault that names the address. The
//! red zones between allocations catch accesses past the end. Alignment is checked by the callers.

use super::fault::{Fault, Kind};
use super::ops::texture::{BYTES, INDEX, SAMPLER, Texture};

/// A bit that a handle has which is the address of a reference.
const BY_ADDRESS: u32 = 1 << 31;
/// Address of the first global allocation.
const GLOBAL_BASE: u64 = 0x7f20_0000_0000;
/// Least gap between two allocations, in bytes.
const RED_ZONE: u64 = 0x1_0000;

/// One allocation of global memory.
#[derive(Clone, Debug)]
pub struct Allocation {
    /// The name in messages.
    pub name: String,
    /// The address of the first byte.
    pub base: u64,
    /// The contents.
    pub bytes: Vec<u8>,
    /// Whether the program may store into it.
    pub writable: bool,
}

/// Global memory: allocations in ascending address order.
#[derive(Clone, Debug, Default)]
pub struct Global {
    allocations: Vec<Allocation>,
    last: usize,
    /// Addresses of textures by the number in their handles less one.
    textures: Vec<u64>,
}

impl Global {
    /// Allocates bytes at a new address, a multiple of 512, and returns it.
    pub fn allocate(&mut self, name: &str, bytes: Vec<u8>, writable: bool) -> u64 {
        let end = self.allocations.last().map_or(GLOBAL_BASE, |a| a.base + a.bytes.len() as u64 + RED_ZONE);
        let base = end.next_multiple_of(512);
        self.allocations.push(Allocation { name: name.to_string(), base, bytes, writable });
        base
    }

    /// The contents of the allocation at a base address.
    pub fn bytes_at(&self, base: u64) -> Option<&[u8]> {
        let index = self.allocations.binary_search_by_key(&base, |a| a.base).ok()?;
        Some(&self.allocations[index].bytes)
    }

    /// Gives textures the numbers in their handles.
    pub fn name_textures(&mut self, addresses: Vec<u64>) {
        self.textures = addresses;
    }

    /// Addresses of textures by the number in their handles less one.
    pub fn textures(&self) -> &[u64] {
        &self.textures
    }

    /// The texture of the low word of a handle, read by a sampler if one is given: by its own word,
    /// or above the number of the texture.
    ///
    /// # Errors
    ///
    /// What is no texture.
    pub fn texture(&mut self, word: u32, sampler: Option<u32>) -> Result<Texture, Fault> {
        let texture = self.numbered(word & INDEX)?;
        match sampler.unwrap_or((word & !BY_ADDRESS) >> SAMPLER) & INDEX {
            0 => Ok(texture),
            number => Ok(texture.with_sampler(&self.numbered(number)?)),
        }
    }

    fn numbered(&mut self, number: u32) -> Result<Texture, Fault> {
        let base = (number as usize).checked_sub(1).and_then(|i| self.textures.get(i)).copied();
        let base = base.ok_or_else(|| Fault::new(format!("there is no texture at the handle {number:#x}")))?;
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(self.slice(base, BYTES as u64, false)?);
        Texture::read(base, &bytes).map_err(|what| Fault::new(what).about(base))
    }

    /// Overwrites the allocation at a base address, even if it is read-only.
    pub fn fill(&mut self, base: u64, bytes: &[u8]) {
        if let Ok(index) = self.allocations.binary_search_by_key(&base, |a| a.base) {
            self.allocations[index].bytes.copy_from_slice(bytes);
        }
    }

    /// The bytes of an access; `write` asks for permission to store.
    ///
    /// # Errors
    ///
    /// An access outside all allocations, or a store to a read-only one.
    pub fn slice(&mut self, address: u64, width: u64, write: bool) -> Result<&mut [u8], Fault> {
        let hit = |a: &Allocation| {
            let offset = address.checked_sub(a.base)?;
            (offset.checked_add(width)? <= a.bytes.len() as u64).then_some(offset as usize)
        };
        if self.allocations.get(self.last).and_then(hit).is_none() {
            self.last = self.allocations.partition_point(|a| a.base <= address).saturating_sub(1);
        }
        match self.allocations.get_mut(self.last) {
            Some(a) if hit(a).is_some() && write && !a.writable => {
                Err(Fault::of(Kind::OutOfBounds, format!("store to read-only {} at {address:#x}", a.name))
                    .about(address))
            }
            Some(a) if hit(a).is_some() => {
                let offset = (address - a.base) as usize;
                Ok(&mut a.bytes[offset..offset + width as usize])
            }
            near => Err(Fault::of(Kind::OutOfBounds, out_of_bounds(near.map(|a| &*a), address, width)).about(address)),
        }
    }
}

fn out_of_bounds(near: Option<&Allocation>, address: u64, width: u64) -> String {
    let mut text = format!("global access of {width} bytes out of bounds at {address:#x}");
    if let Some(a) = near
        && address >= a.base
    {
        let past = address - a.base;
        text += &format!(" ({past} bytes from the start of {}, which has {})", a.name, a.bytes.len());
    }
    text
}

/// The bytes of an access to flat memory; `what` names the memory in messages.
///
/// # Errors
///
/// An access past the end.
pub fn flat<'a>(memory: &'a mut [u8], what: &str, address: u64, width: u64) -> Result<&'a mut [u8], Fault> {
    let size = memory.len();
    let end = address.checked_add(width).filter(|end| *end <= size as u64);
    match end {
        Some(end) => Ok(&mut memory[address as usize..end as usize]),
        None => {
            let text = format!("{what} access of {width} bytes out of bounds at {address:#x} (size {size:#x})");
            Err(Fault::of(Kind::OutOfBounds, text).about(address))
        }
    }
}

/// Reads up to 8 bytes, little-endian.
pub fn load(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Writes up to 8 bytes, little-endian.
pub fn store(bytes: &mut [u8], value: u64) {
    for (i, byte) in bytes.iter_mut().enumerate().take(8) {
        *byte = (value >> (8 * i)) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_are_apart() {
        let mut global = Global::default();
        let a = global.allocate("a", vec![0; 16], true);
        let b = global.allocate("b", vec![1; 8], false);
        assert!(b - a >= RED_ZONE + 16);
        store(global.slice(a + 8, 8, true).expect("inside"), 0x0102_0304_0506_0708);
        assert_eq!(load(global.slice(a + 12, 4, false).expect("inside")), 0x0102_0304);
        assert_eq!(load(global.slice(b, 4, false).expect("inside")), 0x0101_0101);
        let fault = global.slice(a + 13, 4, false).expect_err("outside");
        assert!(fault.what.contains("out of bounds") && fault.what.contains("13 bytes from the start of a"));
        assert!(global.slice(0, 4, false).is_err() && global.slice(u64::MAX, 8, true).is_err());
        assert!(global.slice(b, 4, true).expect_err("constant").what.contains("read-only b"));
        assert!(global.slice(a + 16, 1, false).is_err());
    }

    #[test]
    fn flat_memory_ends() {
        let mut memory = vec![0; 8];
        assert!(flat(&mut memory, "shared", 4, 4).is_ok());
        assert!(flat(&mut memory, "shared", 5, 4).is_err());
        assert!(flat(&mut memory, "shared", u64::MAX, 4).is_err());
    }
}
