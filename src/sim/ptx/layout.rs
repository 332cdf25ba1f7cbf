//! Assigns addresses: arguments, variables in each state space, function frames, and the windows of
//! generic addresses.
//!
//! Every buffer and every global variable is an allocation of its own with gaps around it, so that
//! an access past its end is detected. Variables in shared memory, constant memory and frames keep
//! their declared alignment. [`build`] also writes the arguments and the variables' initial values.

use super::values::constant;
use crate::ptx::ast::{Function, FunctionId, InitValue, Linkage, Module, Parameter, SymbolId, SymbolKind, Variable};
use crate::sim::fault::Fault;
use crate::sim::launch::{ArgValue, place};
use crate::sim::memory::{Global, store};
use crate::tables::Target;
use crate::tables::ptx::{Space, TypeClass};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Base addresses of the generic windows of the state spaces other than global memory, far from all
/// allocations.
pub const SHARED_WINDOW: u64 = 0x7fa0 << 32;
/// The window of local memory.
pub const LOCAL_WINDOW: u64 = 0x7fb0 << 32;
/// The address of function 0.
pub const CODE_BASE: u64 = 0x7fc0 << 32;
/// The window of constant memory.
pub const CONST_WINDOW: u64 = 0x7fd0 << 32;
/// The window of kernel parameters.
pub const PARAM_WINDOW: u64 = 0x7fe0 << 32;
/// Distance between the addresses of two functions, in bytes.
pub const CODE_STEP: u64 = 16;
/// Alignment of a function's frame in local memory, in bytes.
pub const FRAME_ALIGN: u64 = 256;

/// The address of a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// None: declared, not defined.
    #[default]
    Undefined,
    /// An address in the symbol's own state space.
    At(u64),
    /// An offset into the frame of its function.
    Frame(u64),
}

/// The addresses of a module's symbols in a launch, and the initial contents of memory.
#[derive(Default)]
pub struct Layout {
    /// The address of each symbol.
    pub places: SecondaryMap<SymbolId, Place>,
    /// Frame size of each function in bytes, by function id.
    pub frames: Vec<u64>,
    /// Size of shared memory in bytes, including the reserved start and dynamic memory.
    pub shared: u64,
    /// Reserved bytes at the start of shared memory.
    pub reserved: u32,
    /// The contents of constant memory.
    pub constants: Vec<u8>,
    /// The contents of parameter memory.
    pub params: Vec<u8>,
    /// The base address of each buffer among the arguments.
    pub buffers: Vec<Option<u64>>,
    /// Handles of textures that are bound to references, by name.
    references: Vec<(String, u64)>,
}

/// The variable that a symbol names, if it is one.
pub fn variable(module: &Module, symbol: SymbolId) -> Option<&Variable> {
    match &module.symbols[symbol].kind {
        SymbolKind::Variable(variable) => Some(variable.as_ref()),
        _ => None,
    }
}

/// The function that a symbol names, directly or through an alias.
pub fn function_of(module: &Module, symbol: SymbolId) -> Option<FunctionId> {
    let alias = module.aliases.iter().find(|(name, _)| *name == symbol);
    match module.symbols[alias.map_or(symbol, |(_, of)| *of)].kind {
        SymbolKind::Function(id) => Some(id),
        _ => None,
    }
}

/// Converts an address in a state space to a generic address.
pub fn generic(space: Space, address: u64) -> u64 {
    address.wrapping_add(match space {
        Space::Shared | Space::SharedCta | Space::SharedCluster => SHARED_WINDOW,
        Space::Local => LOCAL_WINDOW,
        Space::Const => CONST_WINDOW,
        // Addresses of parameters are already inside their window.
        Space::Param | Space::ParamEntry | Space::ParamFunc | Space::Global => 0,
    })
}

/// Lays out a module for a launch of `kernel` and writes arguments and initial values to memory.
/// `dynamic` is the size of dynamic shared memory in bytes.
///
/// # Errors
///
/// Arguments that do not match the kernel's parameters, or an initial value that cannot be
/// computed.
pub fn build(
    module: &Module,
    kernel: FunctionId,
    dynamic: u32,
    args: &[ArgValue],
    global: &mut Global,
) -> Result<Layout, Fault> {
    let mut layout = Layout::default();
    for (id, function) in module.functions.iter() {
        layout.function(module, function);
        debug_assert_eq!(layout.frames.len(), id.index() + 1);
    }
    layout.arguments(module, &module.functions[kernel], args, global)?;
    layout.reserved = Target::by_name(&module.target.name).and_then(Target::info).map_or(0, |info| info.shared_base);
    layout.variables(module, dynamic, global);
    layout.initialise(module, global)?;
    Ok(layout)
}

/// Lays out a module without the arguments of a launch.
pub fn of_module(module: &Module, global: &mut Global) -> Layout {
    let mut layout = Layout::default();
    module.functions.values().for_each(|function| layout.function(module, function));
    layout.variables(module, 0, global);
    layout
}

impl Layout {
    /// Lays out the parameters and the frame of a function.
    fn function(&mut self, module: &Module, function: &Function) {
        let mut at = 0;
        for symbol in function.params.iter().chain(&function.results).filter_map(Parameter::symbol) {
            let Some(variable) = variable(module, symbol) else { continue };
            at = u64::next_multiple_of(at, variable.align.max(1));
            self.places[symbol] = if function.is_entry { Place::At(PARAM_WINDOW + at) } else { Place::Frame(at) };
            at += variable.size;
        }
        let mut frame = if function.is_entry { 0 } else { at };
        for symbol in &function.variables {
            let Some(variable) = variable(module, *symbol) else { continue };
            if matches!(variable.space, Space::Local | Space::Param | Space::ParamFunc) {
                frame = frame.next_multiple_of(variable.align.max(1));
                self.places[*symbol] = Place::Frame(frame);
                frame += variable.size;
            }
        }
        // An array of unknown extent comes last: a call makes its frame longer by the argument.
        if let Some(last) = function.params.last().and_then(Parameter::symbol)
            && !function.is_entry
            && variable(module, last).is_some_and(|v| v.dimensions.contains(&None))
        {
            frame = frame.next_multiple_of(FRAME_ALIGN);
            self.places[last] = Place::Frame(frame);
        }
        self.frames.push(frame);
    }

    fn arguments(
        &mut self,
        module: &Module,
        kernel: &Function,
        args: &[ArgValue],
        global: &mut Global,
    ) -> Result<(), Fault> {
        let allocate =
            |i: usize, bytes: &[u8], writable| Ok(global.allocate(&format!("argument {i}"), bytes.to_vec(), writable));
        let placed = place(args, allocate).map_err(Fault::new)?;
        let (has, gets) = (kernel.params.len(), placed.parameters.len());
        if has != gets {
            return Err(Fault::new(format!("{} has {has} parameters and gets {gets} arguments", kernel.name)));
        }
        self.buffers = placed.buffers;
        global.name_textures(placed.textures);
        self.references = placed.references;
        for (i, (bytes, param)) in placed.parameters.into_iter().zip(&kernel.params).enumerate() {
            let symbol = param.symbol();
            let size = symbol.and_then(|s| variable(module, s)).map_or(0, |v| v.size);
            if bytes.len() as u64 != size {
                let given = bytes.len();
                return Err(Fault::new(format!("parameter {i} of {} has {size} bytes, not {given}", kernel.name)));
            }
            if let Some(Place::At(address)) = symbol.map(|s| self.places[s]) {
                self.params.resize((address - PARAM_WINDOW) as usize, 0);
                self.params.extend(bytes);
            }
        }
        Ok(())
    }

    /// Lays out global, constant and shared variables, wherever they are declared.
    fn variables(&mut self, module: &Module, dynamic: u32, global: &mut Global) {
        let mut shared = u64::from(self.reserved);
        let mut dynamic_align = 16;
        let mut externs = Vec::new();
        for (symbol, of) in module.symbols.iter() {
            let SymbolKind::Variable(variable) = &of.kind else { continue };
            let align = variable.align.max(1);
            match variable.space {
                Space::Shared if variable.linkage == Linkage::Extern => {
                    externs.push(symbol);
                    dynamic_align = dynamic_align.max(align);
                }
                _ if variable.linkage == Linkage::Extern => {}
                _ if variable.ty.class() == TypeClass::Opaque => {
                    let bound = self.references.iter().find(|(name, _)| *name == of.name);
                    self.places[symbol] = Place::At(bound.map_or(0, |(_, handle)| *handle));
                }
                Space::Global => {
                    let base = global.allocate(&of.name, vec![0; variable.size as usize], true);
                    self.places[symbol] = Place::At(base);
                }
                Space::Const => {
                    let at = (self.constants.len() as u64).next_multiple_of(align);
                    self.places[symbol] = Place::At(at);
                    self.constants.resize((at + variable.size) as usize, 0);
                }
                Space::Shared => {
                    shared = shared.next_multiple_of(align);
                    self.places[symbol] = Place::At(shared);
                    shared += variable.size;
                }
                _ => {}
            }
        }
        if !externs.is_empty() || dynamic != 0 {
            shared = shared.next_multiple_of(dynamic_align);
        }
        for symbol in externs {
            self.places[symbol] = Place::At(shared);
        }
        self.shared = shared + u64::from(dynamic);
    }

    /// Writes initial values.
    fn initialise(&mut self, module: &Module, global: &mut Global) -> Result<(), Fault> {
        for (symbol, of) in module.symbols.iter() {
            let (SymbolKind::Variable(variable), Place::At(base)) = (&of.kind, self.places[symbol]) else { continue };
            let width = u64::from(variable.ty.bits().div_ceil(8));
            for element in &variable.init {
                let value = match element.value {
                    InitValue::Constant(value) => constant(value, Some(variable.ty)),
                    InitValue::Address { symbol, offset, generic: is_generic, mask } => {
                        let Some(address) = self.address(module, symbol, is_generic) else {
                            let text = format!("{} is initialised with an unknown address", of.name);
                            return Err(Fault::new(text));
                        };
                        let address = address.wrapping_add(offset as u64);
                        mask.map_or(address, |m| (address & m) >> m.trailing_zeros().min(63))
                    }
                };
                let address = base + element.offset;
                match variable.space {
                    Space::Global => store(global.slice(address, width, true)?, value),
                    Space::Const => {
                        store(crate::sim::memory::flat(&mut self.constants, "constant", address, width)?, value);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The address of a symbol that is the same during the whole launch; `None` for frame
    /// variables.
    pub fn address(&self, module: &Module, symbol: SymbolId, is_generic: bool) -> Option<u64> {
        if let Some(id) = function_of(module, symbol) {
            return Some(CODE_BASE + CODE_STEP * id.index() as u64);
        }
        let space = variable(module, symbol)?.space;
        match self.places[symbol] {
            Place::At(address) if is_generic => Some(generic(space, address)),
            Place::At(address) => Some(address),
            _ => None,
        }
    }
}
