/* Tables: compiled images, the host's in their place, validation, loads from the ground. */
#include "bench_app.h"

typedef struct
{
    uint32 limit;
    uint32 rate;
} Limits_t;

static const Limits_t          compiled      = {10, 20};
static const Limits_t          given         = {11, 21};
static const Limits_t          other         = {1, 2};
static const CFE_TBL_FileDef_t compiled_file = {"BENCH.Limits", "", "limits.tbl", &compiled, sizeof compiled};
static const CFE_TBL_FileDef_t other_file    = {"BENCH.Other", "", "other.tbl", &other, sizeof other};
static const CFE_TBL_FileDef_t short_file    = {"BENCH.Short", "", "short.tbl", &other, 4};

static const CFE_TBL_FileDef_t *const files[] = {&compiled_file, &other_file, &short_file, NULL};

static int32 Validate(void *data)
{
    const Limits_t *limits = data;
    return limits->limit > 100 ? (limits->limit > 1000 ? 1 : -5) : CFE_SUCCESS;
}

static CFE_TBL_Handle_t Register(const char *name)
{
    CFE_TBL_Handle_t handle;
    CHECK_EQ(CFE_TBL_Register(&handle, name, sizeof(Limits_t), CFE_TBL_OPT_DEFAULT, Validate), CFE_SUCCESS);
    return handle;
}

static uint32 LimitOf(CFE_TBL_Handle_t handle, CFE_Status_t expected)
{
    void *address = NULL;
    CHECK_EQ(CFE_TBL_GetAddress(&address, handle), expected);
    const uint32 limit = ((const Limits_t *)address)->limit;
    CHECK(CFE_TBL_ReleaseAddress(handle) >= 0 || expected < 0);
    return limit;
}

static void FilesAreFoundByNameAndCheckedForTheTable(void)
{
    const CFE_TBL_Handle_t limits = Register("Limits");
    const CFE_TBL_Handle_t odd    = Register("Short");
    CHECK_EQ(LimitOf(limits, CFE_TBL_ERR_NEVER_LOADED), 0);
    CHECK_EQ(CFE_TBL_Load(limits, CFE_TBL_SRC_FILE, "/cf/none.tbl"), CFE_TBL_ERR_ACCESS);
    CHECK_EQ(CFE_TBL_Load(limits, CFE_TBL_SRC_FILE, "/cf/other.tbl"), CFE_TBL_ERR_FILE_FOR_WRONG_TABLE);
    CHECK_EQ(CFE_TBL_Load(limits, CFE_TBL_SRC_FILE, "/cf/limits.tbl"), CFE_SUCCESS);
    CHECK_EQ(LimitOf(limits, CFE_TBL_INFO_UPDATED), 10);
    CHECK_EQ(LimitOf(limits, CFE_SUCCESS), 10);
    CHECK_EQ(CFE_TBL_Load(odd, CFE_TBL_SRC_FILE, "/cf/short.tbl"), CFE_TBL_ERR_PARTIAL_LOAD);
    CHECK_EQ(CFE_TBL_Load(odd, CFE_TBL_SRC_ADDRESS, &given), CFE_SUCCESS);
    CHECK_EQ(CFE_TBL_Load(odd, CFE_TBL_SRC_FILE, "/cf/short.tbl"), CFE_TBL_WARN_PARTIAL_LOAD);
    CHECK_EQ(LimitOf(odd, CFE_TBL_INFO_UPDATED), 1);
}

static void BadImagesAreRefused(void)
{
    const Limits_t   bad    = {101, 0};
    const Limits_t   worse  = {1001, 0};
    const Limits_t   good   = {100, 0};
    CFE_TBL_Handle_t limits = Register("Refuse");
    CHECK_EQ(CFE_TBL_Load(limits, CFE_TBL_SRC_ADDRESS, &good), CFE_SUCCESS);
    CHECK_EQ(CFE_TBL_Load(limits, CFE_TBL_SRC_ADDRESS, &bad), -5);
    CHECK_EQ(CFE_TBL_Load(limits, CFE_TBL_SRC_ADDRESS, &worse), CFE_STATUS_VALIDATION_FAILURE);
    CHECK_EQ(LimitOf(limits, CFE_TBL_INFO_UPDATED), 100);
    CHECK_EQ(CFE_TBL_Load(limits, CFE_TBL_SRC_ADDRESS, NULL), CFE_TBL_BAD_ARGUMENT);
    CHECK_EQ(CFE_TBL_Load(limits, (CFE_TBL_SrcEnum_t)7, &good), CFE_TBL_ERR_ILLEGAL_SRC_TYPE);
}

static void TheGroundLoadsAndTheAppTakesOver(void)
{
    const Limits_t         good   = {55, 0};
    const Limits_t         bad    = {101, 0};
    const CFE_TBL_Handle_t limits = Register("Ground");
    void                  *held   = NULL;
    CHECK_EQ(CFE_TBL_Load(limits, CFE_TBL_SRC_ADDRESS, &given), CFE_SUCCESS);
    CHECK_EQ(LimitOf(limits, CFE_TBL_INFO_UPDATED), 11);
    CHECK_EQ(CFE_TBL_Manage(limits), CFE_SUCCESS);
    CHECK_EQ(EXEC_TableLoad("BENCH.Nothing", &good, sizeof good), CFE_TBL_ERR_INVALID_NAME);
    CHECK_EQ(EXEC_TableLoad("BENCH.Ground", &good, 4), CFE_TBL_ERR_PARTIAL_LOAD);
    CHECK_EQ(EXEC_TableLoad("BENCH.Ground", &good, sizeof good), CFE_SUCCESS);
    CHECK_EQ(EXEC_TableLoad("BENCH.Ground", &good, sizeof good), CFE_STATUS_INCORRECT_STATE); /* one at a time */
    CHECK_EQ(LimitOf(limits, CFE_SUCCESS), 11);
    CHECK_EQ(CFE_TBL_GetAddress(&held, limits), CFE_SUCCESS);
    CHECK_EQ(CFE_TBL_Manage(limits), CFE_TBL_INFO_TABLE_LOCKED);
    CHECK_EQ(((const Limits_t *)held)->limit, 11);
    CHECK_EQ(CFE_TBL_ReleaseAddress(limits), CFE_SUCCESS);
    CHECK_EQ(CFE_TBL_Manage(limits), CFE_TBL_INFO_UPDATED);
    CHECK_EQ(LimitOf(limits, CFE_TBL_INFO_UPDATED), 55);
    CHECK_EQ(EXEC_TableLoad("BENCH.Ground", &bad, sizeof bad), CFE_SUCCESS);
    CHECK_EQ(CFE_TBL_Manage(limits), CFE_SUCCESS); /* refused: the table stays */
    CHECK_EQ(CFE_TBL_Manage(limits), CFE_SUCCESS);
    CHECK_EQ(LimitOf(limits, CFE_SUCCESS), 55);
}

static void DoubleBufferedTablesChangeUnderAUser(void)
{
    CFE_TBL_Handle_t handle;
    const Limits_t   next = {3, 4};
    void            *held = NULL;
    CHECK_EQ(CFE_TBL_Register(&handle, "Double", sizeof(Limits_t), CFE_TBL_OPT_DBL_BUFFER, NULL), CFE_SUCCESS);
    CHECK_EQ(CFE_TBL_Load(handle, CFE_TBL_SRC_ADDRESS, &given), CFE_SUCCESS);
    CHECK_EQ(CFE_TBL_GetAddress(&held, handle), CFE_TBL_INFO_UPDATED);
    CHECK_EQ(CFE_TBL_Load(handle, CFE_TBL_SRC_ADDRESS, &next), CFE_SUCCESS);
    CHECK_EQ(((const Limits_t *)held)->limit, 11);
    CHECK_EQ(CFE_TBL_ReleaseAddress(handle), CFE_TBL_INFO_UPDATED);
    CHECK_EQ(LimitOf(handle, CFE_TBL_INFO_UPDATED), 3);
}

static void ArgumentsAreChecked(void)
{
    CFE_TBL_Handle_t handle;
    void            *address;
    CHECK_EQ(CFE_TBL_Register(&handle, "A_NAME_OF_17_LETT", 8, CFE_TBL_OPT_DEFAULT, NULL), CFE_TBL_ERR_INVALID_NAME);
    CHECK_EQ(CFE_TBL_Register(&handle, "Large", 16385, CFE_TBL_OPT_DEFAULT, NULL), CFE_TBL_ERR_INVALID_SIZE);
    CHECK_EQ(CFE_TBL_Register(&handle, "Dump", 8, CFE_TBL_OPT_DUMP_ONLY, NULL), CFE_TBL_ERR_INVALID_OPTIONS);
    CHECK_EQ(CFE_TBL_Register(&handle, "Critical", 8, CFE_TBL_OPT_CRITICAL, NULL), CFE_TBL_WARN_NOT_CRITICAL);
    CHECK(CFE_TBL_HANDLE_IS_VALID(handle));
    CHECK_EQ(CFE_TBL_Register(&handle, "Twice", 8, CFE_TBL_OPT_DEFAULT, NULL), CFE_SUCCESS);
    CHECK_EQ(CFE_TBL_Register(&handle, "Twice", 8, CFE_TBL_OPT_DEFAULT, NULL), CFE_TBL_WARN_DUPLICATE);
    CHECK_EQ(CFE_TBL_Register(&handle, "Twice", 9, CFE_TBL_OPT_DEFAULT, NULL), CFE_TBL_ERR_DUPLICATE_DIFF_SIZE);
    CHECK_EQ(CFE_TBL_GetAddress(&address, CFE_TBL_BAD_TABLE_HANDLE), CFE_TBL_ERR_INVALID_HANDLE);
    CHECK(address == NULL);
}

static void TheHostsImageComesFirst(void)
{
    const CFE_TBL_Handle_t limits = Register("Limits");
    CHECK_EQ(CFE_TBL_Load(limits, CFE_TBL_SRC_FILE, "/cf/limits.tbl"), CFE_SUCCESS);
    CHECK_EQ(LimitOf(limits, CFE_TBL_INFO_UPDATED), 11);
}

int main(void)
{
    const EXEC_Table_t tables[] = {{"BENCH.Limits", &given, sizeof given}};
    EXEC_Config_t      config   = {.quiet = true, .table_files = files};
    BenchUp(&config);
    RUN(FilesAreFoundByNameAndCheckedForTheTable);
    RUN(BadImagesAreRefused);
    RUN(TheGroundLoadsAndTheAppTakesOver);
    RUN(DoubleBufferedTablesChangeUnderAUser);
    RUN(ArgumentsAreChecked);
    BenchDown();
    config.tables      = tables;
    config.table_count = 1;
    BenchUp(&config);
    RUN(TheHostsImageComesFirst);
    BenchDown();
    return CHECK_RESULT();
}
