//! Layout of variables: where each one lives, and the images that the cubin carries.
//!
//! Computes the images of global memory and of constant bank 3, the slots of bank 4 with addresses
//! of global variables, and for each function the offsets of parameters, shared and local
//! variables. Offsets depend only on source order and alignment, so the same text gives the same
//! layout.

use crate::cubin::model::{Binding, Image, Launch, Param, Reloc, Shared, Space as Home, Variable};
use crate::cubin::symbols::{OTHER_CONSTANT, OTHER_GLOBAL, OTHER_MANAGED, OTHER_SHARED, STT_CUDA_OBJECT, info};
use crate::cubin::{KeptSymbol, SymbolHome};
use crate::diag::{Diagnostic, Pos};
use crate::lower::bulk::{STACK_BYTES, is_by_call};
use crate::lower::call::abi::Signature;
use crate::lower::call::call_graph::{Calls, function_of};
use crate::lower::call::params::MOST_IN_REGISTERS;
use crate::lower::image_call::{is_of_volume, stack_bytes};
use crate::lower::operand::constant_bits;
use crate::ptx::ast::{self, FunctionId, InitValue, Linkage, OperandKind, Statement, SymbolId, SymbolKind};
use crate::sorted::{SortedMap, SortedSet};
use crate::tables::GenerationInfo;
use crate::tables::elf::{ElfTarget, Layout, RelocRole, RelocRow};
use crate::tables::ptx::{Limit, Space, TypeClass};

/// Section number of a variable that several objects may declare and none defines.
const SHN_COMMON: u16 = 0xfff2;
/// Section of an object for shared variables that belong to no entry.
pub const LOOSE_SHARED: &str = ".nv_debug.shared";

/// Saturation limits for sums of sizes: far above the sizes that are refused later, far below an
/// overflow.
const MOST_SHARED: u64 = 1 << 48;
const MOST_LOCAL: u64 = 1 << 48;
const MOST_DATA: u64 = 1 << 60;

/// Bytes of bank 4 that variables leave free for the addresses of the driver's functions, of which
/// there are fewer than 256.
const BYTES_OF_FUNCTIONS: u64 = 256 * 8;

/// Module variables, and the address slots that its functions request.
#[derive(Default)]
pub(crate) struct ModuleLayout {
    /// Module variables, in source order.
    pub variables: Vec<Variable>,
    /// Image of variables without initial values.
    pub global: Option<Image>,
    /// Image of variables with initial values.
    pub global_init: Option<Image>,
    /// Constant bank 3: `.const` variables.
    pub constant3: Option<Image>,
    /// Constant bank 4: addresses that code reads.
    pub constant4: Option<Image>,
    constants: SortedMap<SymbolId, u64>,
    slots: SortedMap<SymbolId, u16>,
    function_slots: SortedMap<String, u64>,
    /// Whether this is a relocatable object: variables and functions have symbols, and a linker
    /// assigns their addresses.
    pub object: bool,
    /// Symbols of variables that are in no image: external, common or in shared memory.
    pub loose: Vec<KeptSymbol>,
    loose_names: SortedSet<String>,
    /// Shared memory of an object: each entry's own variables; under `None`, the rest.
    pub shared: SortedMap<Option<FunctionId>, Shared>,
    /// Variables declared in function bodies, with their functions.
    local: SortedMap<SymbolId, FunctionId>,
    elf: Layout,
    /// Warnings about initial values.
    pub warnings: Vec<String>,
    /// What costs speed, in the words of ptxas, each once.
    pub infos: Vec<String>,
    /// Bytes of bank 2, the same in all kernels: addresses of the functions whose address is taken,
    /// then branch tables.
    pub bank2: u32,
}

/// The value of a pointer to the function with this index among those whose address is taken: the
/// offset of its slot in bank 2. The first slot is for the null pointer.
pub(crate) fn pointer_value(place: usize) -> u64 {
    8 * (place as u64 + 1)
}

impl ModuleLayout {
    /// Lays out module-level variables and those that functions declare in `.global` and `.const`.
    pub fn new(
        module: &ast::Module,
        calls: &Calls,
        (object, elf): (bool, Layout),
        diagnostics: &mut Vec<Diagnostic>,
    ) -> ModuleLayout {
        let mut layout = ModuleLayout { object, elf, ..ModuleLayout::default() };
        for (id, function) in module.functions.iter() {
            layout.local.extend(function.variables.iter().map(|variable| (*variable, id)));
        }
        if !calls.pointers.is_empty() && !object {
            layout.bank2 = pointer_value(calls.pointers.len()) as u32;
        }
        let local = module.functions.values().flat_map(|f| f.variables.iter());
        let mut initialised = Vec::new();
        for id in module.globals.iter().chain(local) {
            let symbol = &module.symbols[*id];
            let SymbolKind::Variable(variable) = &symbol.kind else { continue };
            match layout.place(module, *id, &symbol.name, variable) {
                Ok(place) => initialised.extend(place.map(|(home, offset)| (symbol.pos, variable, home, offset))),
                Err(message) => diagnostics.push(Diagnostic::error(symbol.pos, message)),
            }
        }
        // An initial value may be the address of a variable that is declared later.
        let filler = Filler { module, calls, object, elf, constants: &layout.constants, local: &layout.local };
        for (pos, variable, home, offset) in initialised {
            let image = match home {
                Home::Constant => layout.constant3.as_mut(),
                _ => layout.global_init.as_mut(),
            };
            if let Some(Err(message)) = image.map(|image| filler.initialise(image, offset, variable)) {
                diagnostics.push(Diagnostic::error(pos, message));
            }
        }
        layout
    }

    /// Assigns an address to a variable; returns it if the variable may have initial values.
    fn place(
        &mut self,
        module: &ast::Module,
        id: SymbolId,
        name: &str,
        variable: &ast::Variable,
    ) -> Result<Option<(Home, u64)>, String> {
        if self.object && variable.unified.is_some() {
            return Err(format!("Attribute '.unified' of variable '{name}' in an object is not implemented"));
        }
        if variable.ty.class() == TypeClass::Opaque {
            return Ok(None);
        }
        if self.object && self.place_loose(module, id, variable) {
            return Ok(None);
        }
        if variable.linkage == Linkage::Extern && variable.size > 0 {
            let ignored = "in whole program compilation, ignoring extern qualifier";
            self.warnings.push(format!("Unresolved extern variable '{name}' {ignored}"));
        }
        let home = match variable.space {
            Space::Global if variable.init.is_empty() => Home::Global,
            Space::Global => Home::GlobalInit,
            Space::Const => Home::Constant,
            _ => return Ok(None),
        };
        let image = match home {
            Home::Global => &mut self.global,
            Home::GlobalInit => &mut self.global_init,
            Home::Constant => &mut self.constant3,
        }
        .get_or_insert_with(Image::default);
        let offset = image.size.next_multiple_of(variable.align.max(1));
        image.size = offset.saturating_add(variable.size).min(MOST_DATA);
        image.align = image.align.max(variable.align);
        if home == Home::Constant {
            self.constants.insert(id, offset);
        }
        let binding = binding_of(variable.linkage);
        let managed = variable.managed;
        self.variables.push(Variable {
            name: self.link_name(module, id),
            space: home,
            offset,
            size: variable.size,
            binding,
            managed,
        });
        Ok((home != Home::Global).then_some((home, offset)))
    }

    /// The symbol of a variable for a linker: its own name, or a unique one if a function declares
    /// it.
    pub fn link_name(&self, module: &ast::Module, id: SymbolId) -> String {
        link_name(module, id, self.local.contains_key(&id), self.object)
    }

    /// Records a variable of an object that is in no image; returns false for any other.
    fn place_loose(&mut self, module: &ast::Module, id: SymbolId, variable: &ast::Variable) -> bool {
        let shared = is_shared(variable.space);
        let (undefined, common) = (variable.linkage == Linkage::Extern, variable.linkage == Linkage::Common);
        let other = match variable.space {
            Space::Global => OTHER_GLOBAL,
            Space::Const => OTHER_CONSTANT,
            _ if shared => OTHER_SHARED,
            _ => return false,
        };
        let section = match self.local.get(&id).filter(|f| module.functions[**f].is_entry) {
            _ if undefined => SymbolHome::Undefined,
            _ if common && !shared => SymbolHome::Reserved(SHN_COMMON),
            _ if !shared => return false,
            owner => {
                let shared = self.shared.entry(owner.copied()).or_default();
                let start = shared.size.next_multiple_of(variable.align.max(1));
                shared.size = start.saturating_add(variable.size).min(MOST_SHARED);
                shared.align = shared.align.max(variable.align);
                SymbolHome::Section(match owner {
                    Some(entry) => format!(".nv.shared.{}", module.functions[*entry].name),
                    None => LOOSE_SHARED.to_string(),
                })
            }
        };
        let name = self.link_name(module, id);
        if !self.loose_names.insert(name.clone()) {
            return true;
        }
        let info = info(binding_of(variable.linkage), STT_CUDA_OBJECT);
        let other = other | if variable.managed { OTHER_MANAGED } else { 0 };
        // The value field of a variable that a linker places (common or shared) is its alignment.
        let value = if undefined { 0 } else { variable.align };
        let size = variable.size;
        self.loose.push(KeptSymbol { name, shared_name: None, info, other, section, value, size });
        true
    }

    /// Byte offset of a `.const` variable in bank 3.
    pub fn constant_offset(&self, id: SymbolId) -> Option<u64> {
        self.constants.get(&id).copied()
    }

    /// Byte offset in bank 4 of the slot that holds the address of a global variable; `None` if the
    /// bank has no room left for variables.
    pub fn address_slot(&mut self, id: SymbolId, name: &str) -> Option<u16> {
        if let Some(slot) = self.slots.get(&id) {
            return Some(*slot);
        }
        let room = Limit::ConstantVariables.bytes(|_| true) - BYTES_OF_FUNCTIONS;
        if self.constant4.as_ref().is_some_and(|bank| bank.size >= room) {
            return None;
        }
        let slot = self.new_slot(name).try_into().ok()?;
        self.slots.insert(id, slot);
        Some(slot)
    }

    /// Byte offset in bank 4 of the slot that holds the address of a function of the driver.
    pub fn function_slot(&mut self, name: &str) -> u64 {
        if let Some(slot) = self.function_slots.get(name) {
            return *slot;
        }
        let slot = self.new_slot(name);
        self.function_slots.insert(name.to_string(), slot);
        slot
    }

    fn new_slot(&mut self, name: &str) -> u64 {
        let kind = number(RelocRole::Address, self.elf);
        self.constant4.get_or_insert_with(Image::default).push_address(kind, name)
    }

    /// Byte offset in bank 2 of a new branch table.
    pub fn branch_table(&mut self, targets: usize) -> u32 {
        let at = self.bank2;
        self.bank2 += 4 * targets as u32;
        at
    }
}

/// The symbol of a variable; `local` if a function declares it.
fn link_name(module: &ast::Module, id: SymbolId, local: bool, object: bool) -> String {
    let symbol = &module.symbols[id];
    match &symbol.kind {
        SymbolKind::Variable(v) if local && v.linkage == Linkage::Internal && (object || !is_shared(v.space)) => {
            format!("$__{}__{}", symbol.name, id.as_u32())
        }
        _ => symbol.name.clone(),
    }
}

/// The relocation number for a role.
fn number(role: RelocRole, layout: Layout) -> u32 {
    RelocRow::for_role(role, layout).map_or(0, |row| row.number)
}

/// Writes initial values to images.
struct Filler<'a> {
    module: &'a ast::Module,
    calls: &'a Calls,
    object: bool,
    elf: Layout,
    /// Offsets in bank 3.
    constants: &'a SortedMap<SymbolId, u64>,
    /// Variables declared in function bodies.
    local: &'a SortedMap<SymbolId, FunctionId>,
}

/// Bytes of an address.
const ADDRESS_BYTES: usize = 8;

impl Filler<'_> {
    fn initialise(&self, image: &mut Image, base: u64, variable: &ast::Variable) -> Result<(), String> {
        let width = (variable.ty.bits() / 8) as usize;
        for element in &variable.init {
            let at = base + element.offset;
            let value = match &element.value {
                InitValue::Constant(constant) => {
                    let bits = constant_bits(*constant, variable.ty);
                    bits.ok_or("Initial values of this type are not implemented")?
                }
                address => match self.known(address) {
                    Some(value) => value,
                    None => {
                        image.relocs.extend(self.relocations(address, at, width)?);
                        continue;
                    }
                },
            };
            // Bytes behind the last value are zero and need no storage until the file is written.
            let (start, end) = (at as usize, at as usize + width);
            if end as u64 > image.size {
                return Err("Too many initial values".to_string());
            }
            if image.bytes.len() < end {
                image.bytes.resize(end, 0);
            }
            image.bytes[start..end].copy_from_slice(&u128::from(value).to_le_bytes()[..width]);
        }
        Ok(())
    }

    /// The value of an address that no linker or loader changes: an offset in bank 3, or that of a
    /// function in bank 2.
    fn known(&self, value: &InitValue) -> Option<u64> {
        let InitValue::Address { symbol, offset, generic, mask } = value else { return None };
        if self.object {
            return None;
        }
        let whole = match function_of(self.module, *symbol) {
            Some(id) if self.module.functions[id].is_entry => return None,
            Some(id) => self.calls.pointer(id).unwrap_or(0),
            None if *generic => return None,
            None => self.constants.get(symbol)?.wrapping_add(*offset as u64),
        };
        Some(mask.map_or(whole, |mask| (whole & mask) >> mask.trailing_zeros().min(63)))
    }

    /// The relocation role of the address of a symbol.
    fn role(&self, symbol: SymbolId, generic: bool) -> RelocRole {
        match (function_of(self.module, symbol), &self.module.symbols[symbol].kind) {
            (Some(id), _) if self.module.functions[id].is_entry => RelocRole::EntryAddress,
            (Some(_), _) => RelocRole::FunctionAddress,
            // Addresses of global variables are generic addresses.
            (_, SymbolKind::Variable(v)) if v.space == Space::Global => RelocRole::GenericAddress,
            _ if generic => RelocRole::GenericAddress,
            _ => RelocRole::Address,
        }
    }

    /// The relocations of an address as initial value: one, or one per byte if it is truncated to a
    /// shorter element. ptxas writes eight bytes in that case too, over what follows.
    fn relocations(&self, value: &InitValue, at: u64, width: usize) -> Result<Vec<Reloc>, String> {
        let InitValue::Address { symbol, offset, generic, mask } = value else {
            return Err("Initial values of this type are not implemented".to_string());
        };
        let role = self.role(*symbol, *generic);
        let name = match function_of(self.module, *symbol) {
            Some(id) => self.module.functions[self.calls.resolved(id)].name.clone(),
            None => link_name(self.module, *symbol, self.local.contains_key(symbol), self.object),
        };
        let reloc = |at: u64, row: Option<&RelocRow>| {
            let row = row.ok_or_else(|| format!("Address of '{name}' as initial value is not implemented"))?;
            let (kind, symbol) = (row.number, name.clone());
            Ok(Reloc { offset: at, kind, symbol, addend: *offset, explicit_addend: false })
        };
        let piece = |shift: u32| RelocRow::piece(role, self.elf, shift);
        match mask {
            Some(mask) => Ok(vec![reloc(at, piece(mask.trailing_zeros()))?]),
            None if width == ADDRESS_BYTES => Ok(vec![reloc(at, RelocRow::for_role(role, self.elf))?]),
            None => (0..width as u32).map(|n| reloc(at + u64::from(n), piece(8 * n))).collect(),
        }
    }
}

/// ELF binding of a PTX linkage.
pub(crate) fn binding_of(linkage: Linkage) -> Binding {
    match linkage {
        Linkage::Internal => Binding::Local,
        Linkage::Weak => Binding::Weak,
        Linkage::Visible | Linkage::Extern | Linkage::Common => Binding::Global,
    }
}

/// Offsets of the parameters and variables of one function.
#[derive(Default)]
pub(crate) struct FunctionLayout {
    /// Byte offsets: of an entry's parameters in bank 0; of `.shared` variables in the shared
    /// window, including its reserved part; of `.local` variables and of parameter variables in the
    /// frame, from the stack pointer.
    pub places: SortedMap<SymbolId, u64>,
    /// Parameters of an entry, as the cubin lists them.
    pub params: Vec<Param>,
    /// Byte offset of the first parameter in bank 0, and bytes of all.
    pub param_base: u32,
    /// Bytes of all parameters.
    pub param_bytes: u32,
    /// Static shared memory; `None` if the function uses no shared memory.
    pub shared: Option<Shared>,
    /// Whether the launch sizes additional shared memory.
    pub dynamic_shared: bool,
    /// Bytes of the frame that lowering lays out.
    pub local_bytes: u32,
    /// What the stack pointer is a multiple of wherever the function is entered.
    pub stack_align: u64,
    /// Variables of the frame whose alignment is larger; `None` if there are none.
    pub aligned: Option<Aligned>,
    /// Launch directives of an entry.
    pub launch: Launch,
}

/// A part of the frame with variables whose alignment is above that of the stack pointer. It
/// begins at the first multiple of `align` from `start` on, which only the running code knows;
/// their places are offsets from there.
#[derive(Clone, Default)]
pub(crate) struct Aligned {
    pub start: u64,
    pub align: u64,
    pub variables: SortedSet<SymbolId>,
}

impl FunctionLayout {
    /// The layout of a kernel that may call the functions in `reach`.
    pub fn of_entry(
        module: &ast::Module,
        calls: &Calls,
        id: FunctionId,
        reach: &[FunctionId],
        (info, elf): (&GenerationInfo, Option<&ElfTarget>),
    ) -> Result<Self, (Pos, String)> {
        let function = &module.functions[id];
        let mut layout = FunctionLayout {
            launch: launch_of(&function.directives),
            stack_align: STACK_ALIGN,
            ..FunctionLayout::default()
        };
        layout.place_params(module, function, (info, elf))?;
        let mut used = calls.uses(id).symbols.clone();
        // As in ptxas, a variable that a function declares takes room even if nothing names it.
        used.extend(&function.variables);
        for callee in reach {
            used.extend(&calls.uses(*callee).symbols);
            used.extend(&module.functions[*callee].variables);
        }
        layout.place_shared(module, &used, info);
        layout.place_frame(module, calls, id);
        Ok(layout)
    }

    /// Whether this is a kernel's layout: a device function has no parameters in bank 0.
    pub fn is_entry(&self) -> bool {
        self.param_base != 0
    }

    /// The layout of a device function in a kernel, or in an `object`, where code of another
    /// compiler may call it.
    pub fn of_device(
        module: &ast::Module,
        calls: &Calls,
        id: FunctionId,
        kernel: &FunctionLayout,
        object: bool,
    ) -> Self {
        let shared = |id: &SymbolId| matches!(&module.symbols[*id].kind, SymbolKind::Variable(v) if is_shared(v.space));
        let places = kernel.places.iter().filter(|(id, _)| shared(id)).map(|(id, at)| (*id, *at)).collect();
        let stack_align = if object { FOREIGN_STACK_ALIGN } else { STACK_ALIGN };
        let mut layout = FunctionLayout { places, stack_align, ..FunctionLayout::default() };
        layout.place_frame(module, calls, id);
        layout
    }

    /// A parameter's alignment is that of its address in the bank, not of its offset from the first
    /// parameter.
    fn place_params(
        &mut self,
        module: &ast::Module,
        function: &ast::Function,
        (info, elf): (&GenerationInfo, Option<&ElfTarget>),
    ) -> Result<(), (Pos, String)> {
        let bytes = params_end(module, function, 0).min(u64::from(u32::MAX));
        self.param_base = elf.map_or(info.param_base, |elf| elf.param_base(info.param_base, bytes as u32));
        let base = u64::from(self.param_base);
        let mut at = base;
        for (ordinal, param) in function.params.iter().enumerate() {
            let ast::Parameter::Memory(id) = param else {
                return Err((function.pos, "A register parameter of an entry is not implemented".to_string()));
            };
            let SymbolKind::Variable(variable) = &module.symbols[*id].kind else { continue };
            at = at.next_multiple_of(variable.align.max(1));
            let pointer = variable.pointer;
            let number =
                |space: Option<Space>| elf.map_or(0, |elf| elf.layout.info().pointer_space(space.map(|s| s.name())));
            self.params.push(Param {
                ordinal: ordinal as u16,
                offset: (at - base) as u16,
                size: variable.size as u16,
                space: pointer.map_or(0, |p| number(p.space)),
                pointee_align_log2: pointer.map_or(0, |p| p.align.max(1).ilog2() as u8),
            });
            self.places.insert(*id, at);
            at += variable.size;
        }
        self.param_bytes = (at - base) as u32;
        Ok(())
    }

    fn place_shared(&mut self, module: &ast::Module, used: &SortedSet<SymbolId>, info: &GenerationInfo) {
        let variables: Vec<(SymbolId, &ast::Variable)> = variables_of(module, used);
        let base = u64::from(info.shared_base);
        let mut shared = base;
        let mut align = 0;
        let (dynamic, fixed): (Vec<_>, Vec<_>) =
            variables.iter().filter(|(_, v)| is_shared(v.space)).partition(|(_, v)| v.size == 0);
        for (id, variable) in &fixed {
            shared = shared.next_multiple_of(variable.align.max(1));
            self.places.insert(*id, shared);
            shared = shared.saturating_add(variable.size).min(MOST_SHARED);
            align = align.max(variable.align);
        }
        // Dynamic shared arrays all start where the static part ends.
        if let Some(end) = end_of_static_shared(module) {
            shared = shared.next_multiple_of(end);
            align = align.max(end);
        }
        for (id, _) in &dynamic {
            self.places.insert(*id, shared);
        }
        self.dynamic_shared = !dynamic.is_empty();
        if align > 0 {
            self.shared = Some(Shared { size: shared, align });
        }
    }

    /// Lays out the frame, from the stack pointer up: outgoing stack arguments, parameter
    /// variables, local variables.
    fn place_frame(&mut self, module: &ast::Module, calls: &Calls, id: FunctionId) {
        let function = &module.functions[id];
        let uses = calls.uses(id);
        let (mut local, written) = outgoing(module, calls, function);
        let mut put = |id: SymbolId, size: u64, align: u64| {
            local = local.next_multiple_of(align.max(1));
            self.places.insert(id, local);
            local = local.saturating_add(size).min(MOST_LOCAL);
        };
        for (id, size) in own_params(module, function) {
            if uses.addressed.contains(&id) || written.contains(&id) || size > MOST_IN_REGISTERS {
                put(id, size.next_multiple_of(4), STACK_ALIGN);
            }
        }
        let variables = variables_of(module, &uses.symbols);
        let variables = variables.into_iter().filter(|(_, variable)| variable.space == Space::Local);
        let (above, plain): (Vec<_>, Vec<_>) = variables.partition(|(_, variable)| variable.align > self.stack_align);
        plain.into_iter().for_each(|(id, variable)| put(id, variable.size, variable.align));
        local = self.place_aligned(&above, local);
        self.local_bytes = local.next_multiple_of(STACK_ALIGN).min(u64::from(u32::MAX)) as u32;
    }
}

impl FunctionLayout {
    /// Lays out the variables whose alignment is above that of the stack pointer, behind `end`.
    fn place_aligned(&mut self, variables: &[(SymbolId, &ast::Variable)], end: u64) -> u64 {
        let Some(align) = variables.iter().map(|(_, variable)| variable.align).max() else { return end };
        let start = end.next_multiple_of(self.stack_align);
        let mut at = 0u64;
        for (id, variable) in variables {
            at = at.next_multiple_of(variable.align);
            self.places.insert(*id, at);
            at = at.saturating_add(variable.size).min(MOST_LOCAL);
        }
        let variables = variables.iter().map(|(id, _)| *id).collect();
        self.aligned = Some(Aligned { start, align, variables });
        start.saturating_add(align - self.stack_align).saturating_add(at).min(MOST_LOCAL)
    }
}

/// The places that are fixed distances from the stack pointer or from a constant bank.
pub(crate) fn fixed_places(mut all: SortedMap<SymbolId, u64>, aligned: Option<Aligned>) -> SortedMap<SymbolId, u64> {
    let moving = aligned.map(|aligned| aligned.variables).unwrap_or_default();
    all.retain(|id, _| !moving.contains(id));
    all
}

/// End offset of the parameters of an entry that begin at `base`.
fn params_end(module: &ast::Module, function: &ast::Function, base: u64) -> u64 {
    let variables = function.params.iter().filter_map(ast::Parameter::symbol);
    variables.fold(base, |at, id| match &module.symbols[id].kind {
        SymbolKind::Variable(v) => at.next_multiple_of(v.align.max(1)).saturating_add(v.size),
        _ => at,
    })
}

/// Variables in source order, which is that of their numbers.
fn variables_of<'a>(module: &'a ast::Module, used: &SortedSet<SymbolId>) -> Vec<(SymbolId, &'a ast::Variable)> {
    let variable = |id: &SymbolId| match &module.symbols[*id].kind {
        SymbolKind::Variable(variable) => Some((*id, variable.as_ref())),
        _ => None,
    };
    used.iter().filter_map(variable).collect()
}

/// Parameter variables of a function that are not in a constant bank, with their bytes: those of
/// its calls, and in a device function its own.
pub(crate) fn own_params(module: &ast::Module, function: &ast::Function) -> Vec<(SymbolId, u64)> {
    let own = function.params.iter().chain(&function.results).filter_map(ast::Parameter::symbol);
    let own = own.filter(|_| !function.is_entry);
    let variable = |id: SymbolId| match &module.symbols[id].kind {
        SymbolKind::Variable(v) if matches!(v.space, Space::Param | Space::ParamFunc) => Some((id, v.size)),
        _ => None,
    };
    own.chain(function.variables.iter().copied()).filter_map(variable).collect()
}

/// Bytes of stack arguments of the calls of a function, and the variables that a callee writes in
/// memory.
fn outgoing(module: &ast::Module, calls: &Calls, function: &ast::Function) -> (u64, SortedSet<SymbolId>) {
    let (mut bytes, mut written) = (0, SortedSet::new());
    for statement in function.body.iter().flatten() {
        let Statement::Instruction(inst) = statement else { continue };
        if calls.copies_by_call && is_by_call(inst) {
            bytes = STACK_BYTES.max(bytes);
        }
        if calls.images_by_call || calls.volumes_by_call && is_of_volume(inst) {
            bytes = stack_bytes(inst).max(bytes);
        }
        let Some(signature) = Signature::of_call(module, calls, inst) else { continue };
        let places = signature.places();
        bytes = places.stack.max(bytes);
        if places.result_address.is_some()
            && let Some(OperandKind::List(results)) = inst.operands.first().map(|o| &o.kind)
            && let Some(OperandKind::Symbol { symbol, .. }) = results.first().map(|o| &o.kind)
        {
            written.insert(*symbol);
        }
    }
    (bytes.next_multiple_of(STACK_ALIGN), written)
}

/// Alignment of the stack pointer in bytes, in kernels and in what they call.
const STACK_ALIGN: u64 = 16;
/// As [`STACK_ALIGN`], in what the code of another compiler may call: frames of ptxas 13.0.88 are
/// multiples of 8 bytes, and its functions with variables of 16 align the stack pointer themselves.
const FOREIGN_STACK_ALIGN: u64 = 8;

fn launch_of(directives: &ast::Directives) -> Launch {
    Launch {
        max_threads: directives.max_threads,
        required_threads: directives.required_threads,
        max_registers: directives.max_registers.map(|n| n as u16),
        cluster: directives.required_cluster,
        explicit_cluster: directives.explicit_cluster,
        max_cluster_rank: directives.max_cluster_rank,
        blocks_are_clusters: directives.blocks_are_clusters,
        reconfigures: false,
    }
}

/// The alignment of the end of every entry's static shared memory if the module declares a dynamic
/// shared array: dynamic shared memory begins there. Source: ptxas 13.0.88, alignments 1 to 1024,
/// used or not; sm_80 and sm_90.
fn end_of_static_shared(module: &ast::Module) -> Option<u64> {
    const LEAST: u64 = 16;
    let aligns = module.symbols.values().filter_map(|symbol| match &symbol.kind {
        SymbolKind::Variable(v) if is_shared(v.space) && v.size == 0 => Some(v.align),
        _ => None,
    });
    aligns.max().map(|align| align.max(LEAST))
}

/// Whether one of these functions uses shared memory that the launch sizes.
pub(crate) fn asks_launch<'a>(
    module: &ast::Module,
    calls: &Calls,
    mut functions: impl Iterator<Item = &'a FunctionId>,
) -> bool {
    let is_sized = |id: &SymbolId| {
        let kind = &module.symbols[*id].kind;
        matches!(kind, SymbolKind::Variable(v) if is_shared(v.space) && v.linkage == Linkage::Extern)
    };
    functions.any(|id| calls.uses(*id).symbols.iter().any(is_sized))
}

/// Whether a space is `.shared`, with or without its sub-window.
pub(crate) fn is_shared(space: Space) -> bool {
    matches!(space, Space::Shared | Space::SharedCta | Space::SharedCluster)
}
