//! What a cubin's ELF looks like: layouts, sections, attributes, and the facts of each SM number.
//!
//! Handwritten types over generated data; the rows are `elf/*.ron` and `eiattr.ron`. Invariant: orders are by
//! [`Layout`], so that a difference between generations is a column and never a comparison of SM numbers.

/// Facts of a layout. Source: `elf/layouts.ron`.
#[derive(Debug)]
pub struct LayoutInfo {
    /// Relocations without addend go to a table without addends.
    pub split_relocs: bool,
    /// Program-segment flags of constants: 5 shares a segment with the code.
    pub readonly_flags: u32,
    /// The program headers' own segment comes first among the loaded ones.
    pub headers_first: bool,
    /// `sh_info` of `.text` has the register count in its top byte.
    pub text_info_registers: bool,
    /// Greatest number of parameter bytes at the usual `param_base` and in records of the first form.
    pub small_params: u32,
    /// Byte offset in c\[0\] of the first parameter where there are more; `None`: the usual one.
    pub large_param_base: Option<u32>,
}

/// Facts of an SM number. Source: `elf/targets.ron`.
#[derive(Debug)]
pub struct ElfTarget {
    pub sm: u32,
    pub layout: Layout,
    pub flags_low: u8,
    /// 128-byte blocks of NOP behind the code after rounding up.
    pub text_blocks: u32,
    /// Size and alignment of `.nv.shared.reserved.0`.
    pub reserved_shared: Option<(u64, u64)>,
    /// Attributes with one value for all kernels: id, value (`None` where the record has no payload).
    pub constants: &'static [(u8, Option<u32>)],
}

/// Whether a section exists once, or once per function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Module,
    Function,
}

/// What `sh_info` of a section holds.
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
    pub kind: u32,
    pub object_kind: u32,
    pub flags: u64,
    /// 0: taken from the content.
    pub align: u64,
    pub entry: u64,
    /// Section in `sh_link`; empty for none.
    pub link: &'static str,
    pub info: InfoRule,
    pub symbol: bool,
    pub bytes: &'static [u8],
    /// Place in the file by [`Layout`].
    pub order: [Option<u16>; LAYOUT_COUNT],
}

/// Where an attribute record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Module,
    Function,
}

/// What a launch needs, as far as a GPU has answered.
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
    /// Vendor's name without `EIATTR_`.
    pub name: &'static str,
    /// 0 any, 1 none, 2 one byte, 3 two bytes, 4 sized payload.
    pub format: u8,
    pub place: Place,
    pub value: AttributeValue,
    pub kernel_only: bool,
    /// Place among the records by [`Layout`].
    pub order: [u16; LAYOUT_COUNT],
    pub payload: &'static str,
    pub when: &'static str,
    pub driver: DriverNeed,
    /// Where and why ours differs from the incumbent's.
    pub differ: &'static str,
}

/// Value of an attribute of `.nv.compat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompatValue {
    Bytes(&'static [u8]),
    /// One byte: 1 for an accelerator target.
    Accelerator,
}

/// One attribute of `.nv.compat`. Source: `elf/compat.ron`.
#[derive(Debug)]
pub struct CompatRow {
    pub id: u8,
    pub name: &'static str,
    pub format: u8,
    pub value: CompatValue,
    pub differ: &'static str,
}

/// A symbol of the reserved shared memory. Source: `elf/reserved.ron`.
#[derive(Debug)]
pub struct ReservedRow {
    pub name: &'static str,
    pub sms: &'static [u32],
    /// Only where a kernel uses shared memory.
    pub when_shared: bool,
    /// Only in relocatable objects.
    pub when_object: bool,
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
    /// Vendor's name without `R_CUDA_`.
    pub name: &'static str,
    /// What the writer uses it for, by [`Layout`].
    pub roles: [&'static [RelocRole]; LAYOUT_COUNT],
    /// Where the value goes: first and last bit of each range from the relocated byte on, lowest part first.
    pub bits: &'static [(u32, u32)],
    /// Bits of the value that are dropped first.
    pub shift: u32,
    /// A loader puts symbol + addend there.
    pub applies: bool,
}

impl RelocRow {
    /// The row of a number.
    pub fn of(number: u32) -> Option<&'static RelocRow> {
        RELOCATIONS.iter().find(|row| row.number == number)
    }

    /// The row that the writer uses for a role; for those of pieces see [`RelocRow::piece`].
    pub fn for_role(role: RelocRole, layout: Layout) -> Option<&'static RelocRow> {
        RELOCATIONS.iter().find(|row| row.roles[layout as usize].contains(&role))
    }

    /// The row for the byte from this bit on of what a role says; `None` where no byte of it can be asked for.
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

    /// Whether it asks for the generic address of a variable.
    pub fn generic(&self) -> bool {
        let generic = |role: &RelocRole| matches!(role, RelocRole::GenericAddress | RelocRole::GenericPiece);
        self.roles.iter().copied().flatten().any(generic)
    }

    /// Puts a value at a byte; false where the bytes end before it.
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
    /// The first in the tables.
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
    /// Facts of an SM number; `None` where no cubin of it is known.
    pub fn of_sm(sm: u32) -> Option<&'static ElfTarget> {
        ELF_TARGETS.iter().find(|target| target.sm == sm)
    }

    /// Byte offset in c\[0\] of the first parameter, where `usual` is the generation's and there are `bytes` of them.
    pub fn param_base(&self, usual: u32, bytes: u32) -> u32 {
        let layout = self.layout.info();
        layout.large_param_base.filter(|_| bytes > layout.small_params).unwrap_or(usual)
    }

    /// Value of a constant attribute of this target: `None` where it has none, `Some(None)` where it has no payload.
    pub fn constant(&self, id: u8) -> Option<Option<u32>> {
        self.constants.iter().find(|constant| constant.0 == id).map(|constant| constant.1)
    }
}

impl AttributeRow {
    /// The row of an id.
    pub fn of(id: u8) -> Option<&'static AttributeRow> {
        ATTRIBUTES.iter().find(|row| row.id == id)
    }
}

include!(concat!(env!("OUT_DIR"), "/elf.rs"));
