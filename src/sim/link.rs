//! Links a cubin for one launch: lays out code and variables and applies relocations.
//!
//! The code image has the kernel first, then all functions that are not kernels, in file order.
//! Variables go to global memory and to the constant banks 2, 3 and 4. A relocation is applied by
//! its row in the relocation table. If its symbol is unknown (a driver function that the simulator
//! lacks), the place keeps the file's contents in code and stays unset in bank 4; in a variable it
//! is a fault.

use super::fault::Fault;
use super::memory::Global;
use super::ops::texture::DESCRIPTION;
use super::sass::setup::Banks;
use crate::cubin::{Cubin, Function, Image, Reloc, Space};
use crate::sorted::SortedMap;
use crate::tables::elf::RelocRow;
use crate::tables::images;

/// Address of the first instruction.
pub const CODE_BASE: u64 = 0x7fc0 << 32;

/// Addresses of the driver's functions, 16 bytes apart.
pub const SYSTEM_BASE: u64 = 0x7fd0 << 32;

/// The driver's functions that the simulator implements.
pub use crate::tables::choices::SYSTEM;

/// Symbols whose value is the size of the driver's description of a texture, sampler or surface.
const DESCRIPTION_SIZES: [&str; 4] = [
    ".nv.unified.texrefDescSize",
    ".nv.independent.texrefDescSize",
    ".nv.independent.samplerrefDescSize",
    ".nv.surfrefDescSize",
];

/// Alignment of a function's code, in bytes.
const CODE_ALIGN: usize = 128;

/// The code that a kernel may reach, as one image.
pub struct CodeImage<'a> {
    /// The contents of the image.
    pub bytes: Vec<u8>,
    /// The start of each function in the image.
    starts: Vec<(usize, &'a Function)>,
}

/// The number of a function of the driver: those for textures and surfaces come after the others.
fn system_number(name: &str) -> Option<usize> {
    let other = SYSTEM.iter().position(|known| *known == name);
    other.or_else(|| Some(SYSTEM.len() + images::Function::by_name(name)?.0))
}

impl<'a> CodeImage<'a> {
    /// The image of a kernel and all functions that it may call.
    pub fn of(cubin: &'a Cubin, kernel: &'a Function) -> CodeImage<'a> {
        let mut image = CodeImage { bytes: Vec::new(), starts: Vec::new() };
        let others = cubin.functions.iter().filter(|f| !f.kernel && f.name != kernel.name);
        for function in std::iter::once(kernel).chain(others) {
            image.bytes.resize(image.bytes.len().next_multiple_of(CODE_ALIGN), 0);
            image.starts.push((image.bytes.len(), function));
            image.bytes.extend(&function.code);
        }
        if image.starts.len() == 1 {
            image.bytes.clone_from(&kernel.code);
        }
        image
    }

    /// The function that contains a position of the image, and the offset in it.
    pub fn place(&self, pc: u64) -> Option<(&str, u64)> {
        let (start, function) = self.starts.iter().rev().find(|(start, _)| *start as u64 <= pc)?;
        Some((&function.name, pc - *start as u64))
    }
}

/// Resolves symbols to addresses.
pub struct Symbols<'a> {
    cubin: &'a Cubin,
    global: u64,
    global_init: u64,
    /// Generic address of the copy of constant bank 3.
    constants: u64,
    code: SortedMap<&'a str, u64>,
}

impl<'a> Symbols<'a> {
    fn new(cubin: &'a Cubin, image: &CodeImage<'a>, [global, global_init, constants]: [u64; 3]) -> Symbols<'a> {
        let mut code = SortedMap::new();
        for (start, function) in &image.starts {
            let at = CODE_BASE + *start as u64;
            code.insert(function.name.as_str(), at);
            code.extend(function.labels.iter().map(|label| (label.name.as_str(), at + label.offset)));
        }
        Symbols { cubin, global, global_init, constants, code }
    }

    /// Generic address of the copy of constant bank 3.
    pub fn constants(&self) -> u64 {
        self.constants
    }

    /// The address of a symbol. For a constant it is the generic address or the offset in its bank.
    fn address(&self, name: &str, generic: bool) -> Option<u64> {
        match self.cubin.variable(name) {
            Some(variable) => Some(match variable.space {
                Space::Global => self.global + variable.offset,
                Space::GlobalInit => self.global_init + variable.offset,
                Space::Constant if generic => self.constants + variable.offset,
                Space::Constant => variable.offset,
            }),
            None if DESCRIPTION_SIZES.contains(&name) => Some(DESCRIPTION as u64),
            None => self.code.get(name).copied().or_else(|| system_number(name).map(|i| SYSTEM_BASE + 16 * i as u64)),
        }
    }

    /// Applies relocations and returns the offsets of those that cannot be applied.
    fn relocate(&self, bytes: &mut [u8], relocs: &[Reloc]) -> Vec<u64> {
        let failed = |reloc: &&Reloc| {
            let row = RelocRow::of(reloc.kind).filter(|row| row.applies);
            let done = row.and_then(|row| Some((row, self.address(&reloc.symbol, row.generic())?)));
            !done
                .is_some_and(|(row, address)| row.apply(bytes, reloc.offset, address.wrapping_add(reloc.addend as u64)))
        };
        relocs.iter().filter(failed).map(|reloc| reloc.offset).collect()
    }

    /// The instruction words that relocations change, by their position in the image.
    pub fn relocated_code(&self, image: &CodeImage<'_>) -> SortedMap<u64, [u8; 16]> {
        let mut words: SortedMap<u64, [u8; 16]> = SortedMap::new();
        for (start, function) in &image.starts {
            for reloc in &function.code_relocs {
                let at = *start as u64 + reloc.offset;
                let Some(old) = image.bytes.get(at as usize..at as usize + 16) else { continue };
                let word = words.entry(at).or_insert_with(|| old.try_into().unwrap_or_default());
                let here = Reloc { offset: 0, ..reloc.clone() };
                self.relocate(word, &[here]);
            }
        }
        words
    }
}

/// The bytes of an image, including the zeros at its end.
pub fn filled(image: &Image) -> Vec<u8> {
    let mut bytes = image.bytes.clone();
    bytes.resize((image.size as usize).max(bytes.len()), 0);
    bytes
}

/// Allocates variables and fills the constant banks.
///
/// # Errors
///
/// A variable whose initial value needs an unknown symbol.
pub fn place_variables<'a>(
    banks: &mut Banks,
    global: &mut Global,
    cubin: &'a Cubin,
    function: &Function,
    code: &CodeImage<'a>,
) -> Result<Symbols<'a>, Fault> {
    let mut place = |image: &Option<Image>, name: &str| {
        image.as_ref().map_or(0, |image| global.allocate(name, filled(image), true))
    };
    let zeroed = place(&cubin.global, "variables");
    let initialised = place(&cubin.global_init, "initialised variables");
    let constants = global.allocate("constants", cubin.constant3.as_ref().map_or(Vec::new(), filled), false);
    let symbols = Symbols::new(cubin, code, [zeroed, initialised, constants]);
    for (image, base) in [(&cubin.global_init, initialised), (&cubin.constant3, constants)] {
        let Some(image) = image else { continue };
        let mut bytes = filled(image);
        if let Some(at) = symbols.relocate(&mut bytes, &image.relocs).first() {
            return Err(Fault::new(format!("a variable is initialised with an unknown address at {at:#x}")));
        }
        global.fill(base, &bytes);
        if base == constants {
            banks.put(3, 0, &bytes);
        }
    }
    if let Some(image) = &function.constant2 {
        banks.put(2, 0, &filled(image));
    }
    if let Some(image) = &cubin.constant4 {
        let mut bytes = filled(image);
        let missing = symbols.relocate(&mut bytes, &image.relocs);
        for (slot, at) in bytes.chunks_exact(8).zip((0u64..).step_by(8)) {
            if !missing.contains(&at) {
                banks.put(4, at as u32, slot);
            }
        }
    }
    Ok(symbols)
}
