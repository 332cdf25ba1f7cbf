//! The ELF form of cubins: layouts, sections, attributes, and the facts of each SM number.
//!
//! Handwritten types over generated data; the rows are `elf/*.ron` and `eiattr.ron`. Orders are
//! indexed by [`Layout`], so a difference between generations is a column and never a comparison of
//! SM numbers.

/// Facts of a layout. Source: `elf/layouts.ron`.
#[derive(Debug)]
pub struct LayoutInfo {
    /// Relocations without addend go to a separate table without addends.
    pub split_relocs: bool,
    /// Program-segment flags of constants: 5 shares a segment with the code.
    pub readonly_flags: u32,
    /// The segment of the program headers comes first among the loaded ones.
    pub headers_first: bool,
    /// `sh_info` of `.text` has the register count in its top byte.
    pub text_info_registers: bool,
    /// Largest total size of parameters, in bytes, at the usual `param_base` and in records of the
    /// first form.
    pub small_params: u32,
    /// Byte offset in c\[0\] of the first parameter if the total is larger; `None`: the usual one.
    pub large_param_base: Option<u32>,
    /// Numbers of the spaces that pointers of parameters are of, by name.
    pub pointers: &'static [(&'static str, u8)],
}

impl LayoutInfo {
    /// The number of a pointer's space; of generic addresses where it has no name.
    pub fn pointer_space(&self, name: Option<&str>) -> u8 {
        let name = name.unwrap_or("generic");
        self.pointers.iter().find(|(space, _)| *space == name).map_or(0, |(_, number)| *number)
    }
}

/// Facts of an SM number. Source: `elf/targets.ron`.
#[derive(Debug)]
pub struct ElfTarget {
    /// SM number, bits 8-15 of `e_flags`.
    pub sm: u32,
    pub layout: Layout,
    /// Low bits of `e_flags`.
    pub flags_low: u8,
    /// Number of 128-byte blocks of NOPs appended after rounding up.
    pub text_blocks: u32,
    /// Size and alignment of `.nv.shared.reserved.0`.
    pub reserved_shared: Option<(u64, u64)>,
    /// Attributes with one value for all kernels: id and value (`None` for a record without
    /// payload).
    pub constants: &'static [(u8, Option<u32>)],
    /// The toolkit whose rules the file follows, 10 × major + minor: 130 for 13.0.
    pub toolkit: u32,
}

/// Whether a section exists once, or once per function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Module,
    Function,
}

/// Meaning of `sh_info` of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoRule {
    Zero,
    /// The function's code section.
    Text,
    /// The function's symbol.
    Function,
    /// Last local symbol + 1.
    Symbols,
    /// A section by name.
    Section(&'static str),
}

/// One kind of section. Source: `elf/sections.ron`.
#[derive(Debug)]
pub struct SectionRow {
    /// Whole name, or the part before the function's name.
    pub name: &'static str,
    pub scope: Scope,
    pub content: Content,
    /// `sh_type` in executables.
    pub kind: u32,
    /// `sh_type` in relocatable objects.
    pub object_kind: u32,
    pub flags: u64,
    /// 0: taken from the content.
    pub align: u64,
    /// `sh_entsize`
    pub entry: u64,
    /// Section in `sh_link`; empty for none.
    pub link: &'static str,
    pub info: InfoRule,
    /// Whether it gets a section symbol.
    pub symbol: bool,
    /// The fixed contents, if `content` says so.
    pub bytes: &'static [u8],
    /// Position in the file by [`Layout`]; `None`: absent.
    pub order: [Option<u16>; LAYOUT_COUNT],
}

/// The section that holds an attribute record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Module,
    Function,
}

/// Whether the driver needs an attribute, as far as tests on a GPU have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverNeed {
    Required,
    Ignored,
    Unknown,
}

/// One attribute. Source: `eiattr.ron`.
#[derive(Debug)]
pub struct AttributeRow {
    pub id: u8,
    /// NVIDIA's name without `EIATTR_`.
    pub name: &'static str,
    /// 0 any, 1 none, 2 one byte, 3 two bytes, 4 sized payload.
    pub format: u8,
    pub place: Place,
    /// Where the value comes from.
    pub value: AttributeValue,
    /// Only for kernels, not for other functions.
    pub kernel_only: bool,
    /// Position among the records by [`Layout`].
    pub order: [u16; LAYOUT_COUNT],
    /// Description of the payload.
    pub payload: &'static str,
    /// When ptxas writes it.
    pub when: &'static str,
    pub driver: DriverNeed,
    /// Where and why our record differs from that of ptxas; empty if it does not.
    pub differ: &'static str,
}

/// Value of an attribute of `.nv.compat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompatValue {
    Bytes(&'static [u8]),
    /// One byte: 1 for an accelerator target.
    Accelerator,
    /// One byte: what the instructions of the file need.
    Class,
    /// One byte: how they use tensor maps.
    Maps,
    /// One byte: the first one, or the second with products of integers in tensor memory.
    Integers(u8, u8),
}

/// One attribute of `.nv.compat`. Source: `elf/compat.ron`.
#[derive(Debug)]
pub struct CompatRow {
    pub id: u8,
    pub name: &'static str,
    pub format: u8,
    pub value: CompatValue,
    /// The one toolkit whose files have it; `None` where all have.
    pub toolkit: Option<u32>,
    pub differ: &'static str,
}

/// A symbol of the reserved shared memory. Source: `elf/reserved.ron`.
#[derive(Debug)]
pub struct ReservedRow {
    pub name: &'static str,
    /// SM numbers of the targets that have it.
    pub sms: &'static [u32],
    /// Only if a kernel uses shared memory.
    pub when_shared: bool,
    /// Only in relocatable objects.
    pub when_object: bool,
    /// Only if a kernel allocates tensor memory.
    pub when_tensor: bool,
    /// Not where every function has a section of its own.
    pub when_linked: bool,
    pub info: u8,
    pub other: u8,
    /// Empty: undefined.
    pub section: &'static str,
    pub value: u64,
    pub size: u64,
}

/// One relocation. Source: `elf/relocations.ron`.
#[derive(Debug)]
pub struct RelocRow {
    pub number: u32,
    /// NVIDIA's name without `R_CUDA_`.
    pub name: &'static str,
    /// Roles for which the writer uses it, by [`Layout`].
    pub roles: [&'static [RelocRole]; LAYOUT_COUNT],
    /// Destination of the value: first and last bit of each range, counted from the relocated byte,
    /// lowest part first.
    pub bits: &'static [(u32, u32)],
    /// Number of low bits of the value that are dropped first.
    pub shift: u32,
    /// Whether a loader stores symbol + addend.
    pub applies: bool,
}

impl RelocRow {
    /// Whether the driver fills in the index of what a reference names.
    pub fn is_reference(&self) -> bool {
        let roles = [RelocRole::Texture, RelocRole::Sampler, RelocRole::Surface];
        self.roles.iter().copied().flatten().any(|role| roles.contains(role))
    }

    /// The row of a relocation number.
    pub fn of(number: u32) -> Option<&'static RelocRow> {
        RELOCATIONS.iter().find(|row| row.number == number)
    }

    /// The row that the writer uses for a role; for single bytes see [`RelocRow::piece`].
    pub fn for_role(role: RelocRole, layout: Layout) -> Option<&'static RelocRow> {
        RELOCATIONS.iter().find(|row| row.roles[layout as usize].contains(&role))
    }

    /// The row for one byte, starting at bit `shift`, of a role's value; `None` if there is no such
    /// relocation.
    pub fn piece(role: RelocRole, layout: Layout, shift: u32) -> Option<&'static RelocRow> {
        let role = match role {
            RelocRole::Address => RelocRole::AddressPiece,
            RelocRole::FunctionAddress => RelocRole::FunctionPiece,
            RelocRole::GenericAddress => RelocRole::GenericPiece,
            RelocRole::EntryAddress => RelocRole::EntryPiece,
            _ => return None,
        };
        RELOCATIONS.iter().find(|row| row.roles[layout as usize].contains(&role) && row.shift == shift)
    }

    /// Whether it stores the generic address of a variable.
    pub fn generic(&self) -> bool {
        let generic = |role: &RelocRole| matches!(role, RelocRole::GenericAddress | RelocRole::GenericPiece);
        self.roles.iter().copied().flatten().any(generic)
    }

    /// Stores a value at a byte offset; returns false if the bytes are too short.
    pub fn apply(&self, bytes: &mut [u8], at: u64, value: u64) -> bool {
        let Some(bytes) = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at..)) else { return false };
        if self.bits.iter().any(|(_, last)| *last as usize / 8 >= bytes.len()) {
            return false;
        }
        let mut rest = value >> self.shift;
        for bit in self.bits.iter().flat_map(|(first, last)| *first..=*last) {
            let byte = &mut bytes[bit as usize / 8];
            *byte = *byte & !(1 << (bit % 8)) | ((rest & 1) as u8) << (bit % 8);
            rest >>= 1;
        }
        true
    }
}

impl Default for Layout {
    /// The first layout of the tables.
    fn default() -> Self {
        Layout::ALL[0]
    }
}

impl Layout {
    /// Facts of this layout.
    pub fn info(self) -> &'static LayoutInfo {
        &LAYOUTS[self as usize]
    }
}

impl ElfTarget {
    /// Facts of an SM number; `None` if its cubins are unknown.
    pub fn of_sm(sm: u32) -> Option<&'static ElfTarget> {
        ELF_TARGETS.iter().find(|target| target.sm == sm)
    }

    /// The symbol of what a block keeps of tensor memory, and its place in shared memory.
    pub fn tensor_partition(&self) -> Option<(&'static str, u64)> {
        let is_it =
            |row: &&ReservedRow| row.when_tensor && !row.when_object && row.size > 0 && row.sms.contains(&self.sm);
        RESERVED.iter().find(is_it).map(|row| (row.name, row.value))
    }

    /// Byte offset in c\[0\] of the first parameter. `usual` is the offset of the generation,
    /// `bytes` the total size of the parameters.
    pub fn param_base(&self, usual: u32, bytes: u32) -> u32 {
        let layout = self.layout.info();
        layout.large_param_base.filter(|_| bytes > layout.small_params).unwrap_or(usual)
    }

    /// Value of a constant attribute of this target: `None` if it has none, `Some(None)` if it has
    /// no payload.
    pub fn constant(&self, id: u8) -> Option<Option<u32>> {
        self.constants.iter().find(|constant| constant.0 == id).map(|constant| constant.1)
    }
}

impl AttributeRow {
    /// The row of an attribute id.
    pub fn of(id: u8) -> Option<&'static AttributeRow> {
        ATTRIBUTES.iter().find(|row| row.id == id)
    }
}

include!(concat!(env!("OUT_DIR"), "/elf.rs"));
