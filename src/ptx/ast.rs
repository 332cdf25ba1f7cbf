//! The syntax tree of one PTX module, with every name resolved.
//!
//! The parser builds it; lowering and the PTX interpreter read it. In a tree that `parse` returned
//! without an error, each id indexes its table, each instruction matches a row of `tables/ptx` with
//! its modifiers and types sorted into fields, and constant expressions are folded. Scopes are
//! flattened: two registers of the same name in different scopes have two [`RegId`]s, and only
//! registers that occur are in the table. Every item has the position of its name.

use crate::diag::Pos;
use crate::tables::ptx::{FieldInfo, Modifiers, Op, RowId, ScalarType, Space, SpecialRegister};
use cranelift_entity::{PrimaryMap, entity_impl};
use smallvec::SmallVec;
use std::sync::Arc;

/// A register of one function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegId(u32);
entity_impl!(RegId, "reg");

/// A label of one function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(u32);
entity_impl!(LabelId, "label");

/// A variable, parameter, function or prototype anywhere in the module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(u32);
entity_impl!(SymbolId, "symbol");

/// A function of the module, with or without a body.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(u32);
entity_impl!(FunctionId, "function");

/// One PTX file.
#[derive(Clone, Debug)]
pub struct Module {
    /// `.version major.minor`
    pub version: (u32, u32),
    /// The `.target` directive; of several files, the one for the highest target.
    pub target: Target,
    /// In bits: 32 or 64.
    pub address_size: u32,
    /// The first access to generic or global memory through a register that is too narrow for an
    /// address: the program would need 32-bit addresses.
    pub narrow_address: Option<NarrowAddress>,
    /// Everything that an operand can name by a symbol: module-level and function-level symbols
    /// share one table.
    pub symbols: PrimaryMap<SymbolId, Symbol>,
    /// Module-level variables in source order.
    pub globals: Vec<SymbolId>,
    /// In order of first declaration; a declaration and its definition share one entry.
    pub functions: PrimaryMap<FunctionId, Function>,
    /// `.file index "name"`
    pub files: Vec<File>,
    /// `.section .debug_… { … }` and `@@DWARF` text, uninterpreted.
    pub debug_sections: Vec<DebugSection>,
    /// Module-level `.pragma` strings.
    pub pragmas: Vec<Pragma>,
    /// `.alias a, b;`
    pub aliases: Vec<(SymbolId, SymbolId)>,
}

/// An access through a register of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NarrowAddress {
    pub pos: Pos,
    /// The file has an `.address_size` directive.
    pub is_sized: bool,
}

/// The `.target` directive.
#[derive(Clone, Debug)]
pub struct Target {
    /// As written: `sm_90a`.
    pub name: String,
    pub pos: Pos,
    /// `texmode_independent` (`false`: unified, the default).
    pub independent_textures: bool,
    /// `debug`
    pub debug: bool,
    /// `map_f64_to_f32`
    pub map_f64_to_f32: bool,
}

/// A named thing other than a register or a label: small, because there may be millions.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// As written.
    pub name: String,
    pub pos: Pos,
    pub kind: SymbolKind,
}

/// The kinds of symbols. What is large is apart, because most are functions or variables.
#[allow(clippy::box_collection)]
#[derive(Clone, Debug)]
pub enum SymbolKind {
    Variable(Box<Variable>),
    Function(FunctionId),
    /// `.callprototype`
    Prototype(Box<Prototype>),
    /// `.calltargets`
    CallTargets(Box<Vec<SymbolId>>),
}

/// A variable in a state space, parameters included.
#[derive(Clone, Debug)]
pub struct Variable {
    pub linkage: Linkage,
    pub space: Space,
    /// Type of one element.
    pub ty: ScalarType,
    /// Elements of the vector type: 1, 2, 4.
    pub vector: u32,
    /// Array dimensions, outermost first; empty for a scalar. A dimension of `None` is `[]`: taken
    /// from the initialiser where there is one, otherwise of unknown extent (`.extern .shared .b8
    /// s[]`).
    pub dimensions: SmallVec<[Option<u64>; 1]>,
    /// In bytes, a power of two: as written, otherwise the natural alignment.
    pub align: u64,
    /// In bytes; 0 when the extent is unknown.
    pub size: u64,
    /// `.ptr` of an entry's parameter.
    pub pointer: Option<PointerAttributes>,
    /// `.attribute(.managed)`
    pub managed: bool,
    /// `.attribute(.unified(a, b))`
    pub unified: Option<(u64, u64)>,
    /// Flattened, one entry for each initialised element in memory order; the rest is zero. Empty:
    /// no initialiser.
    pub init: Vec<Initializer>,
    /// What the initialiser of a single reference says, in its order.
    pub fields: Vec<Field>,
}

/// One field of the initialiser of a reference.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub info: &'static FieldInfo,
    /// The low 32 bits of its value, or the number that stands for a name.
    pub value: u32,
}

/// One initialised element. It starts `offset` bytes into the variable and is as wide as the
/// element type.
#[derive(Clone, Debug, PartialEq)]
pub struct Initializer {
    pub offset: u64,
    pub value: InitValue,
}

/// The value of an initialised element.
#[derive(Clone, Debug, PartialEq)]
pub enum InitValue {
    Constant(Constant),
    /// The address of a symbol plus an offset.
    Address {
        symbol: SymbolId,
        offset: i64,
        /// `generic(symbol)`: the generic address, not the one in its own state space.
        generic: bool,
        /// `mask(value)`: only the byte under this mask (0xFF, 0xFF00, …), shifted down.
        mask: Option<u64>,
    },
}

/// `.ptr .space .align n`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerAttributes {
    /// `None`: generic.
    pub space: Option<Space>,
    /// In bytes; 4 if not written.
    pub align: u64,
}

/// Who sees a symbol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    #[default]
    Internal,
    Visible,
    Extern,
    Weak,
    Common,
}

/// An `.entry` or a `.func`.
#[derive(Clone, Debug)]
pub struct Function {
    pub name: String,
    /// Position of the name.
    pub pos: Pos,
    /// The function's entry in [`Module::symbols`].
    pub symbol: SymbolId,
    pub is_entry: bool,
    pub linkage: Linkage,
    /// What a `.func` returns, in order.
    pub results: Vec<Parameter>,
    pub params: Vec<Parameter>,
    /// Functions without any share them, because there may be a million of them.
    pub directives: Arc<Directives>,
    /// Only registers that are parameters or occur in the body.
    pub registers: PrimaryMap<RegId, Register>,
    pub labels: PrimaryMap<LabelId, Label>,
    /// `.local`, `.shared`, `.param` (call arguments), `.global`, `.const` variables declared in
    /// the body.
    pub variables: Vec<SymbolId>,
    /// `None`: declared only.
    pub body: Option<Box<[Statement]>>,
    /// The closing brace of the body, or the `;` of a declaration.
    pub end: Pos,
}

/// A parameter or a result.
#[derive(Clone, Debug)]
pub enum Parameter {
    /// `.param`: an entry's parameter in constant bank 0, or a function's by value. The symbol is a
    /// variable of space `Param`.
    Memory(SymbolId),
    /// `.reg` of a `.func`.
    Register(RegId),
}

impl Parameter {
    /// Its symbol, if it is in memory.
    pub fn symbol(&self) -> Option<SymbolId> {
        match self {
            Parameter::Memory(symbol) => Some(*symbol),
            Parameter::Register(_) => None,
        }
    }
}

/// Performance-tuning and other directives between a function's head and its body. `None`: absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Directives {
    /// `.maxntid`, in threads per dimension.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`, in threads per dimension.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub min_blocks_per_sm: Option<u32>,
    /// `.maxnctapersm`
    pub max_blocks_per_sm: Option<u32>,
    /// `.maxnreg`
    pub max_registers: Option<u32>,
    /// `.noreturn`
    pub no_return: bool,
    /// `.reqnctapercluster`, in blocks per dimension.
    pub required_cluster: Option<[u32; 3]>,
    /// `.maxclusterrank`
    pub max_cluster_rank: Option<u32>,
    /// `.explicitcluster`
    pub explicit_cluster: bool,
    /// `.blocksareclusters`
    pub blocks_are_clusters: bool,
    /// `.abi_preserve n`
    pub abi_preserve: Option<u32>,
    /// `.abi_preserve_control n`
    pub abi_preserve_control: Option<u32>,
    /// `.attribute(.unified(a, b))`
    pub unified: Option<(u64, u64)>,
    /// Whether an entry waits before it exits until the faults of its accesses are known; set by an
    /// option, not by the text.
    pub errors_at_exit: bool,
    pub pragmas: Vec<Pragma>,
}

/// `.pragma "text", "text"`
#[derive(Clone, Debug, PartialEq)]
pub struct Pragma {
    pub texts: Vec<String>,
    pub pos: Pos,
}

/// A register of a function.
#[derive(Clone, Debug)]
pub struct Register {
    /// As written; not unique where scopes nest.
    pub name: String,
    pub ty: ScalarType,
    /// Elements of the vector type: 1, 2, 4.
    pub vector: u32,
    /// Position of the declaration.
    pub pos: Pos,
}

/// A label of a function.
#[derive(Clone, Debug)]
pub struct Label {
    pub name: String,
    pub pos: Pos,
    /// `name: .branchtargets a, b;`: the targets of a `brx.idx`. Empty for an ordinary label.
    pub targets: Vec<LabelId>,
}

/// `.callprototype`
#[derive(Clone, Debug)]
pub struct Prototype {
    /// What the callee returns, in order.
    pub results: Vec<PrototypeParameter>,
    pub params: Vec<PrototypeParameter>,
    /// `.noreturn`
    pub no_return: bool,
    /// `.abi_preserve n`
    pub abi_preserve: Option<u32>,
    /// `.abi_preserve_control n`
    pub abi_preserve_control: Option<u32>,
}

/// A parameter of a prototype, reduced to its layout.
#[derive(Clone, Debug, PartialEq)]
pub struct PrototypeParameter {
    /// `.reg` instead of `.param`.
    pub in_register: bool,
    pub ty: ScalarType,
    /// Elements of the vector type of a register.
    pub vector: u32,
    /// In bytes; 0 when the extent is unknown.
    pub size: u64,
    pub align: u64,
}

/// One element of a body, in source order. Nearly all are instructions, so the large variant is not
/// boxed.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
pub enum Statement {
    Label(LabelId),
    Instruction(Box<Instruction>),
    /// `.loc`: applies to the instructions after it.
    Location(Box<Location>),
    Pragma(Pragma),
}

/// `.loc file line column[, function_name label[+n], inlined_at file line column]`
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    pub pos: Pos,
    /// Number of a [`File`].
    pub file: u32,
    pub line: u32,
    pub column: u32,
    pub inlined: Option<InlinedAt>,
}

/// The call site of inlined code.
#[derive(Clone, Debug, PartialEq)]
pub struct InlinedAt {
    /// Label in a debug section that starts the function's name.
    pub function_name: String,
    /// Byte offset that `+n` adds to the label.
    pub name_offset: i64,
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Position of the opcode, not of the guard.
    pub pos: Pos,
    pub guard: Option<Guard>,
    /// The operation, as `tables/ptx` names it (`add`, `ld`, `shfl.sync`).
    pub op: Op,
    /// The matching row of `tables/ptx`.
    pub row: RowId,
    /// The modifiers between operation and types; their order is not kept. Instructions share them,
    /// because they are many bytes and few differ.
    pub mods: Arc<Modifiers>,
    /// Type suffixes in source order: `cvt.f32.s32` has two.
    pub types: SmallVec<[ScalarType; 2]>,
    /// In source order. A `call` always has at least three: the results (a `List`, empty if none),
    /// the callee (`Symbol` or `Register`) and the arguments (a `List`); then the prototype or
    /// target list (`Symbol`), if any.
    pub operands: SmallVec<[Operand; 4]>,
}

/// `@p` or `@!p`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    pub register: RegId,
    pub negated: bool,
}

/// An operand with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    pub pos: Pos,
    pub kind: OperandKind,
}

/// What an operand is.
#[derive(Clone, Debug, PartialEq)]
pub enum OperandKind {
    Register(RegisterUse),
    /// `%tid.x`
    Special(SpecialRegister),
    Constant(Constant),
    /// The address of a variable or function, as in `mov.u64 %rd, name+8`.
    Symbol {
        symbol: SymbolId,
        offset: i64,
        /// Written `name[i]`, which also stands where an address does.
        indexed: bool,
    },
    /// `[…]`
    Address(Address),
    /// `{a, b}`; elements are registers, constants and sinks.
    Vector(Vec<Operand>),
    /// A branch target or a target list.
    Label(LabelId),
    /// `_`
    Sink,
    /// `d|p`
    Pair(Box<(Operand, Operand)>),
    /// `(a, b)` of a call.
    List(Vec<Operand>),
}

/// One use of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterUse {
    pub register: RegId,
    /// `!p`
    pub not: bool,
    /// `-r`, of video instructions.
    pub negate: bool,
    pub part: Part,
}

/// A part of a register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    #[default]
    Whole,
    /// `.x .y .z .w` (or `.r .g .b .a`) of a vector register: 0–3.
    Element(u8),
    /// `.b0`–`.b3` of a video instruction.
    Byte(u8),
    /// `.h0`, `.h1` of a video instruction.
    Half(u8),
    /// `.b3210` or `.h10` of a video instruction.
    Lanes(Lanes),
}

/// Bytes or halves of a video instruction of two or four lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// Halves if true, bytes otherwise.
    pub halves: bool,
    /// Number of lanes named.
    pub count: u8,
    /// Lane numbers, in reverse order of writing.
    pub at: [u8; 4],
}

/// `[base+offset]`, or `[base, coordinates]` of textures and tensors.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    pub base: AddressBase,
    /// In bytes.
    pub offset: i64,
    /// The operands after the base inside the brackets: a sampler, coordinates. Empty for plain
    /// memory.
    pub rest: Rest,
    /// `[…].unified`: the address of a constant, unified over the GPUs of the system.
    pub unified: bool,
}

/// The operands behind the base of an address. Most addresses have none, and an operand stays small
/// where they are elsewhere.
#[allow(clippy::box_collection)]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rest(Option<Box<Vec<Operand>>>);

impl From<Vec<Operand>> for Rest {
    fn from(list: Vec<Operand>) -> Rest {
        Rest((!list.is_empty()).then(|| Box::new(list)))
    }
}

impl std::ops::Deref for Rest {
    type Target = [Operand];
    fn deref(&self) -> &[Operand] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }
}

impl std::ops::DerefMut for Rest {
    fn deref_mut(&mut self) -> &mut [Operand] {
        self.0.as_deref_mut().map_or(&mut [], Vec::as_mut_slice)
    }
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressBase {
    /// `[imm]`
    Absolute,
    Register(RegId),
    Symbol(SymbolId),
}

/// A folded constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Constant {
    /// 64 bits; `unsigned` matters only while folding.
    Int { bits: u64, unsigned: bool },
    /// `0f3F800000`
    F32(u32),
    /// `0d…`, and decimal floats, which are of type f64 and narrowed by the instruction's type.
    F64(u64),
}

/// `.file index "name"[, time, size]`
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    pub index: u32,
    /// As written, with its directory.
    pub name: String,
    /// In seconds since 1970.
    pub timestamp: Option<u64>,
    /// In bytes.
    pub size: Option<u64>,
}

/// Debug data as text.
#[derive(Clone, Debug, PartialEq)]
pub struct DebugSection {
    /// Name of the section.
    pub name: String,
    /// One entry per line: `.b8 1, 2` or a label.
    pub lines: Vec<String>,
}
