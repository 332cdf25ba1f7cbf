//! The contents of a cubin as values: functions with their launch facts, variables, constant banks,
//! relocations.
//!
//! The compiler or the reader fills the model; the writer lays it out as ELF, and the simulator and
//! the disassembler take code, banks and images from it. Nothing here is an index into a file:
//! functions, variables and sections refer to each other by symbol name, and every offset is in
//! bytes from the start of its section.

use super::passthrough::Kept;
use crate::tables::elf::{ElfTarget, ReservedRow};

/// One cubin: an executable (what the driver loads) or a relocatable object (`-c`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cubin {
    pub kind: ElfKind,
    /// SM number of the target, as in bits 8-15 of `e_flags`: the same for a target and its `a` and
    /// `f` variants.
    pub sm: u32,
    /// Accelerator target (the `a` of `sm_90a`), as in `.nv.compat`; false where the file has no
    /// such section.
    pub accelerator: bool,
    /// What the instructions of the file need, as in `.nv.compat`: 0 and 1 are the same, 2 is for
    /// tensor memory, 3 for products of integers and shifts in it, 4 for products of warp groups.
    pub isa_class: u8,
    /// How they use tensor maps, as in `.nv.compat`: 1 reads, 2 changes them, 3 both.
    pub tensor_maps: u8,
    /// Whether they multiply integers in tensor memory, as in `.nv.compat`.
    pub tensor_integers: bool,
    /// SM number of the PTX `.target`, as in the note `cuinfo`.
    pub ptx_sm: u32,
    /// Version of the toolkit whose rules the file follows, 10 × major + minor: 130 for 13.0.
    pub toolkit: u32,
    /// Every function of an executable has a section of its own, as with debug information.
    pub separate: bool,
    /// Top byte of `e_flags` of a file that was read; `None`: as ptxas counts it.
    pub flags_top: Option<u8>,
    /// The functions use their own calling conventions instead of the ABI, as ptxas does for
    /// functions with several results.
    pub without_abi: bool,
    pub tool: ToolNote,
    /// Kernels and separate device functions, in file order (ptxas writes the last function of the
    /// source first).
    pub functions: Vec<Function>,
    /// Module variables, local ones first; their bytes are in the four images below.
    pub variables: Vec<Variable>,
    /// `.nv.global`: variables without initial value; `bytes` is empty, `size` counts.
    pub global: Option<Image>,
    /// `.nv.global.init`: variables with initial value; relocations fill in addresses.
    pub global_init: Option<Image>,
    /// `.nv.constant3`: user constants, bank c\[3\].
    pub constant3: Option<Image>,
    /// `.nv.constant4`: 8-byte slots with the address of a symbol each, bank c\[4\].
    pub constant4: Option<Image>,
    /// `.nv.callgraph`: callers and callees.
    pub call_graph: Vec<CallRow>,
    /// `.nv.prototype`, only in objects: functions and their prototypes, as in [`CallRow`].
    pub prototypes: Vec<(String, String)>,
    /// Samplers that the module names, in order of declaration.
    pub samplers: Vec<Sampler>,
    /// Whether samplers are apart from textures (`.target …, texmode_independent`).
    pub independent_textures: bool,
    /// Whether something asks what kind of handle a handle is (`istypep`).
    pub asks_kind: bool,
    /// Sections and symbols that the model has no field for.
    pub kept: Kept,
}

impl Cubin {
    /// Whether it has a symbol of the reserved shared memory, if its kernels use shared memory.
    pub fn describes(&self, row: &ReservedRow, target: &ElfTarget) -> bool {
        let suits = match self.kind {
            ElfKind::Relocatable => row.when_object || row.section.is_empty(),
            ElfKind::Executable => !(row.when_object || row.when_linked && self.separate),
        };
        suits && (!row.when_tensor || self.allocates_tensor_memory()) && row.sms.contains(&target.sm)
    }

    /// Whether a function allocates tensor memory.
    pub fn allocates_tensor_memory(&self) -> bool {
        self.functions.iter().any(|function| function.tensor.allocates)
    }
}

/// What the initialiser of a sampler says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampler {
    pub name: String,
    /// One byte each: the address modes of x, y and z, and the filter; 0xff where nothing is said.
    pub settings: u32,
    /// What it says of coordinates that are never normalised.
    pub unnormalized: Option<u32>,
}

/// `e_type` of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ElfKind {
    #[default]
    Executable,
    Relocatable,
}

/// The tool that wrote the file: the note `tkinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolNote {
    /// Command name, such as `sassafras`.
    pub name: String,
    /// Version of the tool.
    pub version: String,
    /// Build identification of the tool.
    pub build: String,
    /// Options that affected the result, such as `-arch sm_90`; never a path.
    pub options: String,
}

/// One `.text.NAME` section: a kernel, or a device function that has a section of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// A kernel can be launched; any other function is called.
    pub kernel: bool,
    pub binding: Binding,
    /// Instruction words of 16 bytes, little endian, padding included.
    pub code: Vec<u8>,
    /// PTX line of each word, 0 if none; shorter than the code, or empty, if unknown. Not read back
    /// from a file.
    pub lines: Vec<u32>,
    /// Alignment of the section in bytes; 0 means the target's default.
    pub code_align: u64,
    /// Only in relocatable objects.
    pub code_relocs: Vec<Reloc>,
    /// Symbols inside the code: device functions placed after their kernel (`$kernel$func`).
    pub labels: Vec<Label>,
    /// Register count as the file states it: highest register index + 1 + 2.
    pub registers: u32,
    /// Highest barrier index + 1; 16 if a barrier number is in a register; 0 for none.
    pub barriers: u8,
    /// Byte offset of the first parameter in bank c\[0\]; the target's `param_base`.
    pub param_base: u32,
    /// Bytes of all parameters from `param_base` on.
    pub param_bytes: u32,
    /// Words of bank c\[0\] behind the parameters that the driver fills with what references
    /// name, in ascending order.
    pub references: Vec<Reloc>,
    /// In order of their ordinal.
    pub params: Vec<Param>,
    /// Static shared memory; `None` if the kernel uses no shared memory at all.
    pub shared: Option<Shared>,
    pub stack: Stack,
    pub launch: Launch,
    /// Offsets of instructions that loader, debugger and profiler need.
    pub sites: Sites,
    pub tensor: TensorUse,
    /// Whether its text has a `wmma` instruction.
    pub wmma: bool,
    /// Whether its text asks for the shared memory that the driver reserves.
    pub reserved: bool,
    /// Whether its code reads the number of the block in z; kept on targets that state it.
    pub block_z: bool,
    /// `.nv.constant2.NAME`: branch tables, bank c\[2\].
    pub constant2: Option<Image>,
    /// External functions called, by symbol (`vprintf`).
    pub externs: Vec<String>,
    /// Each EXIT waits until the faults of earlier accesses are known.
    pub errors_at_exit: bool,
    /// With debug information for values: how the stack pointer moves, from byte offsets on in
    /// bytes below its value at the entry. Not read back from a file.
    pub unwinding: Option<Vec<(u64, u32)>>,
    /// Attribute records that the model has no field for, in file order.
    pub kept_attributes: Vec<Attribute>,
}

/// ELF symbol binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Binding {
    Local,
    #[default]
    Global,
    Weak,
}

/// A symbol inside a function's code; offset and size in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    pub offset: u64,
    pub size: u64,
    pub binding: Binding,
    /// Stack bytes of the function that starts here.
    pub frame: Option<u32>,
}

/// One kernel parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Param {
    pub ordinal: u16,
    /// Bytes from the function's `param_base`.
    pub offset: u16,
    /// In bytes.
    pub size: u16,
    /// Declared state space of a pointer parameter (`.ptr`): 0 not declared, 1 local, 2 shared, 4
    /// global, 5 generic; constant is 3 or 4, by target.
    pub space: u8,
    /// log2 of the declared alignment of the pointee; 0 if not declared.
    pub pointee_align_log2: u8,
}

/// Static shared memory of a kernel: bytes from the start of the window, including the target's
/// reserved part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// In bytes.
    pub size: u64,
    /// In bytes.
    pub align: u64,
}

/// Stack and local memory per thread, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stack {
    /// Frame of this function: local variables, spills, outgoing arguments.
    pub frame: u32,
    /// Minimum stack of a launch, calls included; 0 for recursion. `None`: not stated (device
    /// functions).
    pub min: Option<u32>,
    /// Maximum stack, stated in relocatable objects only.
    pub max: Option<u32>,
    /// Size of the call-return stack, stated (as 0) if the code has calls, indirect branches
    /// or places where lanes reconverge.
    pub call_return: Option<u32>,
}

/// Launch limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// `.maxntid`
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`
    pub required_threads: Option<[u32; 3]>,
    /// Register limit under which the code was compiled; `None`: no limit by the user, 255 in the
    /// file.
    pub max_registers: Option<u16>,
    /// `.reqnctapercluster`
    pub cluster: Option<[u32; 3]>,
    /// `.explicitcluster`
    pub explicit_cluster: bool,
    /// `.maxclusterrank`
    pub max_cluster_rank: Option<u32>,
    /// `.blocksareclusters`
    pub blocks_are_clusters: bool,
    /// Whether `setmaxnreg` changes the number of registers of a warp.
    pub reconfigures: bool,
}

/// How a function uses tensor memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorUse {
    /// Whether it accesses it at all.
    pub any: bool,
    /// Whether it does more than load and store.
    pub unit: bool,
    /// Whether it allocates it.
    pub allocates: bool,
    /// Whether it does so, or has products, with another block.
    pub pair: bool,
    /// Whether it has products of sparse matrices.
    pub sparse: bool,
}

/// Byte offsets of instructions inside the code of a function, ascending unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// Each EXIT.
    pub exits: Vec<u32>,
    /// Warp-wide operations of the PTX code: shuffle, vote, match, warp barrier.
    pub warp_wide: Vec<u32>,
    /// The mask of each of these, in the same order: its register in the top byte, all ones if it
    /// is constant.
    pub warp_wide_masks: Vec<u32>,
    /// Warp-wide operations that the compiler inserted.
    pub inserted_warp_wide: Vec<u32>,
    /// Operations on mbarriers.
    pub mbarriers: Vec<MbarrierSite>,
    /// Operands of some of them, three words each, as `tables/eiattr.ron` describes them.
    pub register_map: Vec<u32>,
    /// Loads of several words of which only some are read: offset, and a mask of the bytes that
    /// are.
    pub partly_read: Vec<(u32, u32)>,
    /// Calls to functions of the driver.
    pub syscalls: Vec<u32>,
    pub indirect_branches: Vec<IndirectBranch>,
}

/// An operation on an mbarrier: its byte offset, its kind as `tables/eiattr.ron` numbers them, and
/// its address, registers plus a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MbarrierSite {
    pub offset: u32,
    pub kind: u8,
    pub register: u8,
    pub uniform: u8,
    pub address: u32,
}

/// A BRX and its possible targets; all byte offsets from the start of the function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndirectBranch {
    /// The branch instruction.
    pub offset: u32,
    /// Possible targets.
    pub targets: Vec<u32>,
}

/// One row of the call graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallRow {
    /// A direct call, also of an external function.
    Direct { caller: String, callee: String },
    /// The address of the function is taken. The prototype is `#`, a letter for the result (v for
    /// none), and one letter per parameter.
    Address { function: String, prototype: String },
    /// The function calls through a pointer to functions of this prototype.
    Indirect { caller: String, prototype: String },
    /// A call through a pointer can reach this function.
    Reaches { caller: String, callee: String },
}

/// Where a variable lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// In [`Cubin::global`]: no initial value.
    Global,
    /// In [`Cubin::global_init`].
    GlobalInit,
    /// In [`Cubin::constant3`].
    Constant,
}

/// A module variable; offset in bytes into the image of its space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub space: Space,
    pub offset: u64,
    pub size: u64,
    pub binding: Binding,
    /// Unified memory (`.attribute(.managed)`).
    pub managed: bool,
}

/// The bytes of a data section: `bytes`, then zeros up to `size`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub bytes: Vec<u8>,
    pub size: u64,
    pub align: u64,
    pub relocs: Vec<Reloc>,
}

impl Image {
    /// An image of exactly these bytes.
    pub fn new(bytes: Vec<u8>, align: u64) -> Self {
        Image { size: bytes.len() as u64, bytes, align, relocs: Vec::new() }
    }

    /// Appends an 8-byte slot which the loader fills with the address of `symbol`; returns the
    /// slot's byte offset.
    pub fn push_address(&mut self, kind: u32, symbol: &str) -> u64 {
        let offset = self.size.next_multiple_of(8);
        self.size = offset + 8;
        self.bytes.resize(self.size as usize, 0);
        self.align = self.align.max(8);
        self.relocs.push(Reloc { offset, kind, symbol: symbol.to_string(), addend: 0, explicit_addend: false });
        offset
    }
}

/// One relocation: stores the value of `symbol` + `addend` at `offset` of the section, in the way
/// given by `kind`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloc {
    pub offset: u64,
    /// `R_CUDA_*` number: 2 is a 64-bit address, 4 a 64-bit generic address.
    pub kind: u32,
    /// Empty for none.
    pub symbol: String,
    pub addend: i64,
    /// The addend is 0 but was read from a table with addends, where the target would write it
    /// without; false in new models.
    pub explicit_addend: bool,
}

/// One attribute record (`.nv.info`), uninterpreted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribute {
    pub format: u8,
    pub id: u8,
    pub payload: Vec<u8>,
}

impl Cubin {
    /// The function of a given name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// The variable of a given name.
    pub fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.iter().find(|variable| variable.name == name)
    }
}

/// Bytes of what the driver writes for a reference.
const REFERENCE_BYTES: u32 = 4;

impl Function {
    /// Size of constant bank c\[0\] in bytes: the part that the driver fills, the parameters, and
    /// the words of references.
    pub fn constant0_bytes(&self) -> u32 {
        let end = self.references.iter().map(|reloc| reloc.offset as u32 + REFERENCE_BYTES).max();
        end.unwrap_or(0).max(self.param_base + self.param_bytes)
    }
}
