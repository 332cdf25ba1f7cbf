//! Where code and variables lie in a launch, and what relocations put there.
//!
//! Input: a cubin, linked by whoever, and one of its kernels. Output: the code as one image, variables in global memory, constant banks
//! 2, 3 and 4. Invariants: the kernel comes first, then all functions that are no kernels, in file order; a relocation
//! is applied by its row in the table of relocations or not at all; a place whose symbol is nowhere (a function of the driver) is left as the file
//! has it, but for a variable, where that is a fault.

use super::fault::Fault;
use super::memory::Global;
use super::sass::setup::Banks;
use crate::cubin::{Cubin, Function, Image, Reloc, Space};
use crate::tables::elf::RelocRow;
use std::collections::{BTreeMap, HashMap};

/// Address of the first instruction.
pub const CODE_BASE: u64 = 0x7fc0 << 32;

/// Addresses of the functions of the driver, 16 bytes apart.
pub const SYSTEM_BASE: u64 = 0x7fd0 << 32;

/// The functions of the driver, which the machine has.
pub use crate::tables::choices::SYSTEM;

/// Code of a function begins at a multiple of this.
const CODE_ALIGN: usize = 128;

/// The code that a kernel may reach.
pub struct CodeImage<'a> {
    pub bytes: Vec<u8>,
    /// First byte of each function, and the functions.
    starts: Vec<(usize, &'a Function)>,
}

impl<'a> CodeImage<'a> {
    /// The kernel and all functions behind it.
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

    /// The function at a place of the image, and the offset in it.
    pub fn place(&self, pc: u64) -> Option<(&str, u64)> {
        let (start, function) = self.starts.iter().rev().find(|(start, _)| *start as u64 <= pc)?;
        Some((&function.name, pc - *start as u64))
    }
}

/// Where symbols are.
pub struct Symbols<'a> {
    cubin: &'a Cubin,
    global: u64,
    global_init: u64,
    /// Generic address of bank 3.
    constants: u64,
    code: HashMap<&'a str, u64>,
}

impl<'a> Symbols<'a> {
    fn new(cubin: &'a Cubin, image: &CodeImage<'a>, [global, global_init, constants]: [u64; 3]) -> Symbols<'a> {
        let mut code = HashMap::new();
        for (start, function) in &image.starts {
            let at = CODE_BASE + *start as u64;
            code.insert(function.name.as_str(), at);
            code.extend(function.labels.iter().map(|label| (label.name.as_str(), at + label.offset)));
        }
        Symbols { cubin, global, global_init, constants, code }
    }

    /// Generic address of bank 3.
    pub fn constants(&self) -> u64 {
        self.constants
    }

    /// The address of a symbol: of a constant its generic one, or its offset in the bank.
    fn address(&self, name: &str, generic: bool) -> Option<u64> {
        match self.cubin.variable(name) {
            Some(variable) => Some(match variable.space {
                Space::Global => self.global + variable.offset,
                Space::GlobalInit => self.global_init + variable.offset,
                Space::Constant if generic => self.constants + variable.offset,
                Space::Constant => variable.offset,
            }),
            None => self
                .code
                .get(name)
                .copied()
                .or_else(|| SYSTEM.iter().position(|known| *known == name).map(|i| SYSTEM_BASE + 16 * i as u64)),
        }
    }

    /// Applies relocations; the places of those that cannot be applied are returned.
    fn relocate(&self, bytes: &mut [u8], relocs: &[Reloc]) -> Vec<u64> {
        let failed = |reloc: &&Reloc| {
            let row = RelocRow::of(reloc.kind).filter(|row| row.applies);
            let done = row.and_then(|row| Some((row, self.address(&reloc.symbol, row.generic())?)));
            !done
                .is_some_and(|(row, address)| row.apply(bytes, reloc.offset, address.wrapping_add(reloc.addend as u64)))
        };
        relocs.iter().filter(failed).map(|reloc| reloc.offset).collect()
    }

    /// The words of code that relocations change, by their place in the image.
    pub fn relocated_code(&self, image: &CodeImage<'_>) -> BTreeMap<u64, [u8; 16]> {
        let mut words: BTreeMap<u64, [u8; 16]> = BTreeMap::new();
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

/// The bytes of an image, zeros at its end included.
pub fn filled(image: &Image) -> Vec<u8> {
    let mut bytes = image.bytes.clone();
    bytes.resize((image.size as usize).max(bytes.len()), 0);
    bytes
}

/// Puts variables and constant banks in their places.
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
