//! State of the lowering of one function: the current block and guard, the operands of each PTX
//! register, and the values that the whole function shares (descriptor of global memory, shared
//! window, return address).
//!
//! The result is an [`ori::Function`](crate::ori::Function) that is not yet in SSA form. The
//! virtual registers of the PTX registers are created first, so "visible in PTX" is a comparison of
//! register numbers, and a register belongs to at most one register tuple. A guarded instruction
//! keeps its guard if it writes a visible register, accesses memory or is convergent; otherwise it
//! is emitted unguarded.

use crate::diag::Pos;
use crate::lower::call::call_graph::Calls;
use crate::lower::call::params::Home;
use crate::lower::elected::Elected;
use crate::lower::module::layout::{FunctionLayout, ModuleLayout};
use crate::lower::texture_handle::Handles;
use crate::ori::mods::*;
use crate::ori::watched::{Part, Watched, WatchedRegister};
use crate::ori::{Block, Code, Convention, File, Function, InstId, Operand, VReg};
use crate::ptx::ast;
use crate::sorted::SortedMap;
use crate::tables::registers::{Callee, first_kept};
use crate::tables::{Feature, GenerationInfo, Op, Role, Target};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Why an instruction cannot be lowered.
pub(crate) enum Refusal {
    /// This form is not implemented.
    NotBuilt,
    /// Any other error, with its position and text.
    At(Pos, String),
}

/// Result of lowering one instruction or one of its operands.
pub(super) type Lowered<T = ()> = Result<T, Refusal>;

/// Numbers of the uniform registers that hold the descriptor of global memory in every function
/// but kernels with calls.
const DESCRIPTOR: [u16; 2] = [4, 5];

/// Lowering of one function.
pub(super) struct Builder<'a> {
    /// The module being lowered.
    pub module: &'a ast::Module,
    /// The PTX function being lowered.
    pub source: &'a ast::Function,
    /// Layout of the module's variables, and address slots requested so far.
    pub globals: &'a mut ModuleLayout,
    /// The call graph of the module.
    pub calls: &'a Calls,
    /// Offsets of the function's parameters and variables.
    pub layout: FunctionLayout,
    /// Where parameter variables outside constant banks live.
    pub homes: SortedMap<ast::SymbolId, Home>,
    /// The target.
    pub target: &'static Target,
    /// Facts about the target's generation.
    pub info: &'static GenerationInfo,
    /// The function under construction, with the guard and the source line of the current PTX
    /// instruction.
    pub code: Code,
    /// One operand per element of each PTX register: a register, or a pair for 64 bits.
    registers: SecondaryMap<ast::RegId, SmallVec<[Operand; 1]>>,
    /// The predicates that choose one lane of a warp, and whether only it executes the current PTX
    /// instruction.
    pub elected: Elected,
    pub alone: bool,
    /// In code that is run once for each lane, the predicate of the lane whose turn it is.
    pub turn: Operand,
    /// The registers that always have one value.
    pub known: SortedMap<ast::RegId, u64>,
    /// Registers that have one of a few constant values wherever they are read.
    pub choices: SortedMap<ast::RegId, Vec<u64>>,
    /// Whether any PTX register of the function has 128 bits.
    pub has_quads: bool,
    /// Instructions that compute the shared values of the function; `finish` puts them in front of
    /// the entry block.
    prologue: Vec<InstId>,
    /// Prologue of a device function, which receives its parameters; it comes before `prologue`.
    arrivals: Vec<InstId>,
    /// Block with the only return of a device function; `None` until a `ret` was lowered.
    pub return_block: Option<Block>,
    /// Words of the return address, and the address that a result in memory is written to, if any.
    pub return_address: [Operand; 2],
    /// Address that a result in memory is written to; null if there is none.
    pub result_address: Operand,
    /// Whether the function contains an `alloca`; computed on first use.
    pub takes_memory: std::cell::OnceCell<bool>,
    /// Current end of the stack below what `alloca` took; null until something needs it.
    pub stack_end: Operand,
    /// Address of variables whose alignment is above that of the stack pointer; null until
    /// something needs it.
    pub aligned_base: Operand,
    /// Functions of the driver that the function calls.
    pub externs: Vec<String>,
    /// Whether the function reads constant bank 2.
    pub branch_bank: bool,
    descriptor: Operand,
    /// Handles of textures and surfaces.
    pub handles: Handles,
    /// Base of the block's shared window; null until something needs it.
    pub shared_window: Operand,
    /// The PTX carry flag; `None` until something uses it. It is the carry of the adder, so after a
    /// subtraction it means "no borrow".
    pub carry: Option<VReg>,
    /// Highest number of a block barrier in use plus one; 16 if a barrier number is in a register.
    pub barriers: u8,
}

impl std::ops::Deref for Builder<'_> {
    type Target = Code;

    fn deref(&self) -> &Code {
        &self.code
    }
}

impl std::ops::DerefMut for Builder<'_> {
    fn deref_mut(&mut self) -> &mut Code {
        &mut self.code
    }
}

impl<'a> Builder<'a> {
    /// A builder whose current block is the entry block.
    pub fn new(
        module: &'a ast::Module,
        source: &'a ast::Function,
        globals: &'a mut ModuleLayout,
        calls: &'a Calls,
        layout: FunctionLayout,
        (target, info): (&'static Target, &'static GenerationInfo),
    ) -> Builder<'a> {
        let mut f = Function::new(&source.name, target);
        let mut registers: SecondaryMap<ast::RegId, SmallVec<[Operand; 1]>> = SecondaryMap::new();
        for (id, register) in source.registers.iter() {
            registers[id] = (0..register.vector.max(1)).map(|_| register_for(&mut f, register.ty.bits())).collect();
        }
        let homes = homes_for(&mut f, module, source, &layout);
        let visible = f.regs().len();
        f.attributes_mut().local_bytes = layout.local_bytes;
        if !source.is_entry {
            f.attributes_mut().convention = Convention::Device;
        }
        let block = f.new_block();
        Builder {
            module,
            source,
            globals,
            calls,
            layout,
            homes,
            target,
            info,
            // All registers created so far belong to PTX registers.
            code: Code { f, block, guard: Operand::NULL, line: 0, visible, cold: Vec::new() },
            elected: Elected::new(source),
            alone: false,
            turn: Operand::NULL,
            known: super::known::constants(source.body.as_deref().unwrap_or_default()),
            choices: super::known::choices(source.body.as_deref().unwrap_or_default()),
            registers,
            has_quads: source.registers.iter().any(|(_, register)| register.ty.bits() == 128),
            prologue: Vec::new(),
            arrivals: Vec::new(),
            return_block: None,
            return_address: [Operand::NULL; 2],
            result_address: Operand::NULL,
            takes_memory: std::cell::OnceCell::new(),
            stack_end: Operand::NULL,
            aligned_base: Operand::NULL,
            externs: Vec::new(),
            branch_bank: false,
            descriptor: Operand::NULL,
            handles: Handles::default(),
            shared_window: Operand::NULL,
            carry: None,
            barriers: 0,
        }
    }

    /// Returns the finished function. The prologue and the shared values go in front of the entry
    /// block. The descriptor of a kernel that calls functions is where they leave it. A function
    /// loads it again: its callers count on those registers too.
    pub fn finish(&mut self) -> Function {
        let mut insts = self.f.layout().iter().flat_map(|block| &self.f[*block]);
        let calls = insts.any(|inst| self.f.callee(*inst).is_some_and(Callee::is_function));
        if !self.descriptor.is_null() && calls {
            if self.source.is_entry { self.keep_descriptor() } else { self.reload_descriptor() }
        }
        let entry = self.f.entry();
        let mut insts = std::mem::take(&mut self.arrivals);
        insts.append(&mut self.prologue);
        insts.append(&mut self.f[entry]);
        self.f[entry] = insts;
        std::mem::replace(&mut self.code.f, Function::new("", self.target))
    }

    /// Declares the current contents of the entry block to be the prologue.
    pub fn split_arrivals(&mut self) {
        self.arrivals = std::mem::take(&mut self.code.f[self.code.block]);
    }

    /// Moves the descriptor to where calls of functions leave it.
    fn keep_descriptor(&mut self) {
        let Some(first) = first_kept(File::UR.name()) else { return };
        let pair = self.descriptor.as_vector().map(|vector| self.f.vector_regs(vector).to_vec());
        for (number, reg) in (first..).zip(pair.into_iter().flatten()) {
            self.f[reg].phys = Some(number);
        }
    }

    /// Loads the descriptor again before the first reader behind a call, and in each block: other
    /// lanes may have called meanwhile.
    fn reload_descriptor(&mut self) {
        let pair = self.descriptor.as_vector().map_or(Vec::new(), |vector| self.f.vector_regs(vector).to_vec());
        let entry = self.f.entry();
        for block in self.f.layout().to_vec() {
            let (mut out, mut is_old) = (Vec::new(), block != entry);
            for inst in std::mem::take(&mut self.f[block]) {
                let mut reads = false;
                self.f.for_each_use(inst, |reg| reads |= pair.contains(&reg));
                if reads && is_old {
                    is_old = false;
                    out.push(self.load_descriptor());
                }
                out.push(inst);
                is_old |= self.f.callee(inst).is_some_and(Callee::is_function);
            }
            self.f[block] = out;
        }
    }

    fn load_descriptor(&mut self) -> InstId {
        let op = if self.has(Feature::UniformLoadByScoreboard) { Op::LDCU } else { Op::ULDC };
        let from = Operand::constant(0, self.info.global_desc.unwrap_or(0) as u16);
        self.code.build(op, &[SIZE_64], &[(Role::D, self.descriptor), (Role::C, from)])
    }

    /// The elements of a PTX register.
    pub fn register(&self, id: ast::RegId) -> &[Operand] {
        &self.registers[id]
    }

    /// Marks the virtual registers that hold registers of the text, for a debugger.
    pub fn watch(&mut self) {
        let mut watched = Watched::default();
        for (id, register) in self.source.registers.iter() {
            let number = watched.registers.len();
            let kind = register_kind(register.ty.name(), register.vector);
            watched.registers.push(WatchedRegister { name: register.name.clone(), kind });
            let words = self.registers[id].iter().flat_map(|operand| match operand.as_vector() {
                Some(vector) => self.code.f.vector_regs(vector).to_vec(),
                None => operand.as_reg().into_iter().collect(),
            });
            for (word, reg) in words.enumerate() {
                watched.parts[reg] = Some(Part::new(number, word));
            }
        }
        self.code.f.set_watched(watched);
    }

    /// Replaces the operands of a PTX register and returns the previous ones.
    pub fn replace_register(&mut self, id: ast::RegId, operands: SmallVec<[Operand; 1]>) -> SmallVec<[Operand; 1]> {
        std::mem::replace(&mut self.registers[id], operands)
    }

    /// Appends an instruction to those executed once at the entry of the function.
    pub fn put_first(&mut self, op: Op, mods: &[M], args: &[(Role, Operand)]) {
        let inst = self.build(op, mods, args);
        self.prologue.push(inst);
    }

    /// The descriptor of global memory; null on targets without descriptors.
    pub fn descriptor(&mut self) -> Operand {
        if self.info.global_desc.is_none() {
            return Operand::NULL;
        }
        if self.descriptor.is_null() {
            let vector = self.f.new_vector(File::UR, 2);
            for (reg, phys) in self.f.vector_regs(vector).to_vec().into_iter().zip(DESCRIPTOR) {
                self.f[reg].phys = Some(phys);
                self.f[reg].varying = false;
            }
            self.descriptor = Operand::vector(vector);
            let load = self.load_descriptor();
            self.prologue.push(load);
        }
        self.descriptor
    }

    /// The stack pointer: the address of the function's local variables.
    pub fn stack_pointer(&mut self) -> Operand {
        Operand::reg(self.f.stack_register())
    }
}

/// Assigns a home to each parameter variable that is not in a constant bank.
fn homes_for(
    f: &mut Function,
    module: &ast::Module,
    source: &ast::Function,
    layout: &FunctionLayout,
) -> SortedMap<ast::SymbolId, Home> {
    let mut homes = SortedMap::new();
    for (id, size) in crate::lower::module::layout::own_params(module, source) {
        let home = match layout.places.get(&id) {
            Some(at) => Home::Frame(*at),
            None => Home::Words((0..size.div_ceil(4)).map(|_| Operand::reg(f.new_reg(File::R))).collect()),
        };
        homes.insert(id, home);
    }
    homes
}

/// The number of a register type in `.nv_debug_info_reg_type`. Source: ptxas 13.0.88 -g on a
/// register of each type; types of the same layout that it does not have there are bits.
fn register_kind(ty: &str, vector: u32) -> u8 {
    const KINDS: [&str; 18] = [
        "b8", "b16", "b32", "b64", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f16x2", "f32", "f64",
        "pred", "b128",
    ];
    let number = KINDS.iter().position(|kind| *kind == ty.trim_start_matches('.')).unwrap_or(2) as u8;
    number
        | match vector {
            2 => 0x40,
            4 => 0x80,
            _ => 0,
        }
}

fn register_for(f: &mut Function, bits: u32) -> Operand {
    match bits {
        1 => Operand::reg(f.new_reg(File::P)),
        64 => Operand::vector(f.new_vector(File::R, 2)),
        128 => Operand::vector(f.new_vector(File::R, 4)),
        _ => Operand::reg(f.new_reg(File::R)),
    }
}
