//! Converts arguments to parameter bytes: gives buffers addresses and resolves the addresses in
//! arguments.
//!
//! Every executor uses it with its own allocator. An address may point only into a buffer of an
//! earlier argument. A pointer to a texture is its handle.

use super::ArgValue;
use crate::sim::ops::texture::{reference, used};

/// Arguments as parameter bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// The bytes of each parameter, in the kernel's order.
    pub parameters: Vec<Vec<u8>>,
    /// The address of each argument that is a buffer.
    pub buffers: Vec<Option<u64>>,
    /// The addresses of textures, surfaces and samplers, by the number in their handles less one.
    pub textures: Vec<u64>,
    /// Handles of those that are bound to references, by name.
    pub references: Vec<(String, u64)>,
}

/// Places arguments; `allocate` gets the number of an argument, its bytes and whether a kernel may
/// store there, and returns an address.
///
/// # Errors
///
/// An address into an argument that is no earlier buffer, or an error of `allocate`.
pub fn place(
    args: &[ArgValue],
    mut allocate: impl FnMut(usize, &[u8], bool) -> Result<u64, String>,
) -> Result<Placed, String> {
    let mut placed = Placed::default();
    // What a pointer to a buffer is: its address, or the handle of a texture.
    let mut pointers: Vec<Option<u64>> = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        let base = arg.buffer().map(|(bytes, writable)| allocate(i, bytes, writable)).transpose()?;
        let pointer = base.map(|base| match arg.buffer().and_then(|(bytes, _)| used(bytes)) {
            Some(used) => {
                placed.textures.push(base);
                let handle = used.bit() | placed.textures.len() as u64;
                let name = arg.buffer().and_then(|(bytes, _)| reference(bytes));
                placed.references.extend(name.map(|name| (name, handle)));
                handle
            }
            None => base,
        });
        let address = |arg: usize, offset: u64| {
            let missing = || format!("argument {i} points into argument {arg}, which is no buffer before it");
            pointers.get(arg).copied().flatten().ok_or_else(missing).map(|base| base.wrapping_add(offset))
        };
        let bytes = match arg {
            ArgValue::Scalar { bytes } => Some(bytes.clone()),
            ArgValue::Buffer { .. } => pointer.map(|pointer| pointer.to_le_bytes().to_vec()),
            ArgValue::Memory { .. } => None,
            ArgValue::Within { arg, offset } => Some(address(*arg, *offset)?.to_le_bytes().to_vec()),
            ArgValue::Struct { bytes, addresses } => {
                let mut bytes = bytes.clone();
                for within in addresses {
                    let slot = within.at..within.at + size_of::<u64>();
                    let outside = || format!("argument {i} has no room for an address at {}", within.at);
                    let value = address(within.arg, within.offset)?.to_le_bytes();
                    bytes.get_mut(slot).ok_or_else(outside)?.copy_from_slice(&value);
                }
                Some(bytes)
            }
        };
        placed.parameters.extend(bytes);
        placed.buffers.push(base);
        pointers.push(pointer);
    }
    Ok(placed)
}

#[cfg(test)]
mod tests {
    use super::super::Within;
    use super::*;

    #[test]
    fn addresses_stand_in_structures() {
        let memory = ArgValue::Memory { bytes: vec![0; 16], writable: true };
        let addresses = vec![Within { at: 8, arg: 0, offset: 4 }];
        let structure = ArgValue::Struct { bytes: vec![1; 16], addresses };
        let placed = place(&[memory, structure], |_, bytes, _| Ok(0x100 * bytes.len() as u64)).unwrap();
        assert_eq!(placed.buffers, [Some(0x1000), None]);
        assert_eq!(placed.parameters, [[0x0101_0101_0101_0101u64, 0x1004].map(u64::to_le_bytes).concat()]);
    }

    #[test]
    fn what_points_nowhere_is_refused() {
        let address = |at| ArgValue::Struct { bytes: vec![0; 8], addresses: vec![Within { at, arg: 0, offset: 0 }] };
        let buffer = ArgValue::Buffer { bytes: vec![0; 4], writable: false };
        let message = |args: &[ArgValue]| place(args, |_, _, _| Ok(16)).unwrap_err();
        assert_eq!(message(&[address(0)]), "argument 0 points into argument 0, which is no buffer before it");
        assert_eq!(message(&[buffer, address(4)]), "argument 1 has no room for an address at 4");
    }
}
