/* Operating system layer: semaphores, sockets, select, clock. */
#include <pthread.h>
#include <unistd.h>

#include "bench_app.h"

static void Mutexes(void)
{
    osal_id_t mutex, again;
    CHECK_EQ(OS_MutSemCreate(&mutex, "MUTEX", 0), OS_SUCCESS);
    CHECK_EQ(OS_MutSemCreate(&again, "MUTEX", 0), OS_ERR_NAME_TAKEN);
    CHECK_EQ(OS_MutSemCreate(&again, "A_NAME_OF_20_LETTERS", 0), OS_ERR_NAME_TOO_LONG);
    CHECK_EQ(OS_MutSemCreate(NULL, "X", 0), OS_INVALID_POINTER);
    CHECK(mutex.v != 0);
    CHECK_EQ(OS_MutSemTake(mutex), OS_SUCCESS);
    CHECK_EQ(OS_MutSemTake(mutex), OS_SUCCESS); /* OSAL's mutexes are recursive */
    CHECK_EQ(OS_MutSemGive(mutex), OS_SUCCESS);
    CHECK_EQ(OS_MutSemGive(mutex), OS_SUCCESS);
    CHECK_EQ(OS_MutSemTake(OS_OBJECT_ID_UNDEFINED), OS_ERR_INVALID_ID);
    uint32    count = 1;
    osal_id_t last;
    char      name[20];
    do
    {
        (void)snprintf(name, sizeof name, "M%u", (unsigned)count);
    } while (OS_MutSemCreate(&last, name, 0) == OS_SUCCESS && ++count < 100);
    CHECK_EQ(count, OS_MAX_MUTEXES);
}

static void *Giver(void *sem)
{
    CHECK_EQ(OS_BinSemGive(*(osal_id_t *)sem), OS_SUCCESS);
    return NULL;
}

static void BinarySemaphores(void)
{
    osal_id_t sem;
    pthread_t thread;
    CHECK_EQ(OS_BinSemCreate(&sem, "BIN", 2, 0), OS_INVALID_SEM_VALUE);
    CHECK_EQ(OS_BinSemCreate(&sem, "BIN", OS_SEM_FULL, 0), OS_SUCCESS);
    CHECK_EQ(OS_BinSemGive(sem), OS_SUCCESS); /* stays full */
    CHECK_EQ(OS_BinSemTimedWait(sem, 10000), OS_SUCCESS);
    CHECK_EQ(OS_BinSemTimedWait(sem, 5), OS_SEM_TIMEOUT);
    CHECK_EQ(pthread_create(&thread, NULL, Giver, &sem), 0);
    CHECK_EQ(OS_BinSemTimedWait(sem, 10000), OS_SUCCESS);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static osal_id_t Socket(OS_SockAddr_t *address, const char *ip)
{
    osal_id_t socket = OS_OBJECT_ID_UNDEFINED;
    CHECK_EQ(OS_SocketOpen(&socket, OS_SocketDomain_INET, OS_SocketType_DATAGRAM), OS_SUCCESS);
    CHECK_EQ(OS_SocketAddrInit(address, OS_SocketDomain_INET), OS_SUCCESS);
    CHECK_EQ(OS_SocketAddrFromString(address, ip), OS_SUCCESS);
    return socket;
}

/* Bind to a port of an address of our own. Binding to one in use succeeds too: another run of this test has another one. */
static osal_id_t BoundSocket(OS_SockAddr_t *address, const char *ip)
{
    const osal_id_t socket = Socket(address, ip);
    const uint16    first  = (uint16)(20000 + getpid() % 20000);
    uint16          port   = first;
    CHECK_EQ(OS_SocketAddrSetPort(address, port), OS_SUCCESS);
    while (OS_SocketBind(socket, address) != OS_SUCCESS && port < first + 100)
    {
        CHECK_EQ(OS_SocketAddrSetPort(address, ++port), OS_SUCCESS);
    }
    return socket;
}

static void DatagramsAndSelect(void)
{
    OS_SockAddr_t   here, there, from;
    uint8           buffer[64];
    uint16          port  = 0;
    const osal_id_t left  = BoundSocket(&here, "127.18.250.1");
    const osal_id_t right = BoundSocket(&there, "127.18.250.2");
    OS_FdSet        set;
    CHECK_EQ(OS_SocketAddrGetPort(&port, &here), OS_SUCCESS);
    CHECK(port >= 20000);
    CHECK_EQ(OS_SocketBind(left, &here), OS_ERR_INCORRECT_OBJ_STATE);
    CHECK_EQ(OS_SocketRecvFrom(right, buffer, sizeof buffer, &from, OS_CHECK), OS_ERROR_TIMEOUT);
    CHECK_EQ(OS_SelectFdZero(&set), OS_SUCCESS);
    CHECK_EQ(OS_SelectMultiple(&set, NULL, 0), OS_ERR_INVALID_ID); /* nothing to wait for */
    CHECK_EQ(OS_SelectFdAdd(&set, left), OS_SUCCESS);
    CHECK_EQ(OS_SelectFdAdd(&set, right), OS_SUCCESS);
    CHECK_EQ(OS_SelectMultiple(&set, NULL, 5), OS_ERROR_TIMEOUT);
    CHECK(!OS_SelectFdIsSet(&set, right));

    CHECK_EQ(OS_SocketSendTo(left, "hello", 5, &there), 5);
    CHECK_EQ(OS_SelectFdAdd(&set, left), OS_SUCCESS);
    CHECK_EQ(OS_SelectFdAdd(&set, right), OS_SUCCESS);
    CHECK_EQ(OS_SelectMultiple(&set, NULL, 1000), OS_SUCCESS);
    CHECK(OS_SelectFdIsSet(&set, right));
    CHECK(!OS_SelectFdIsSet(&set, left));
    CHECK_EQ(OS_SocketRecvFrom(right, buffer, sizeof buffer, &from, OS_PEND), 5);
    CHECK(memcmp(buffer, "hello", 5) == 0);
    CHECK(memcmp(&from.AddrData, &here.AddrData, 8) == 0); /* family, port, address */
    CHECK_EQ(OS_SelectFdAdd(&set, left), OS_SUCCESS);
    CHECK_EQ(OS_SelectMultiple(NULL, &set, 1000), OS_SUCCESS); /* there is room to send */
    CHECK_EQ(OS_close(left), OS_SUCCESS);
    CHECK_EQ(OS_close(left), OS_ERR_INVALID_ID);
    CHECK_EQ(OS_close(right), OS_SUCCESS);
}

static void ASecondSocketStealsThePort(void)
{
    OS_SockAddr_t   address, same;
    uint16          port;
    const osal_id_t first  = BoundSocket(&address, "127.18.250.3");
    const osal_id_t second = Socket(&same, "127.18.250.3");
    CHECK_EQ(OS_SocketAddrGetPort(&port, &address), OS_SUCCESS);
    CHECK_EQ(OS_SocketAddrSetPort(&same, port), OS_SUCCESS);
    CHECK_EQ(OS_SocketBind(second, &same), OS_SUCCESS); /* as in OSAL: no error says so */
    CHECK_EQ(OS_close(first), OS_SUCCESS);
    CHECK_EQ(OS_close(second), OS_SUCCESS);
}

static void SocketArgumentsAreChecked(void)
{
    OS_SockAddr_t address;
    osal_id_t     socket;
    CHECK_EQ(OS_SocketOpen(&socket, OS_SocketDomain_INET, OS_SocketType_STREAM), OS_ERR_NOT_IMPLEMENTED);
    CHECK_EQ(OS_SocketOpen(NULL, OS_SocketDomain_INET, OS_SocketType_DATAGRAM), OS_INVALID_POINTER);
    CHECK_EQ(OS_SocketAddrInit(&address, OS_SocketDomain_INVALID), OS_ERR_NOT_IMPLEMENTED);
    CHECK_EQ(OS_SocketAddrFromString(&address, "127.0.0.1"), OS_ERR_BAD_ADDRESS);
    CHECK_EQ(OS_SocketAddrInit(&address, OS_SocketDomain_INET), OS_SUCCESS);
    CHECK_EQ(OS_SocketAddrFromString(&address, "nowhere"), OS_ERROR);
    CHECK_EQ(OS_SocketBind(OS_OBJECT_ID_UNDEFINED, &address), OS_ERR_INVALID_ID);
    CHECK_EQ(OS_SocketSendTo(OS_OBJECT_ID_UNDEFINED, "x", 1, &address), OS_ERR_INVALID_ID);
}

static void ClockAndDelay(void)
{
    OS_time_t before, after;
    CHECK_EQ(OS_GetMonotonicTime(&before), OS_SUCCESS);
    CHECK_EQ(OS_TaskDelay(5), OS_SUCCESS);
    CHECK_EQ(OS_GetMonotonicTime(&after), OS_SUCCESS);
    CHECK(OS_TimeGetTotalMicroseconds(after) - OS_TimeGetTotalMicroseconds(before) >= 5000);
    CHECK_EQ(OS_GetMonotonicTime(NULL), OS_INVALID_POINTER);
}

int main(void)
{
    BenchUp(NULL);
    RUN(Mutexes);
    RUN(BinarySemaphores);
    RUN(DatagramsAndSelect);
    RUN(ASecondSocketStealsThePort);
    RUN(SocketArgumentsAreChecked);
    RUN(ClockAndDelay);
    BenchDown();
    return CHECK_RESULT();
}
