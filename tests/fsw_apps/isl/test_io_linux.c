/**
 * @file
 * The socket of ISL on Linux, when the task that sends is deleted: deleting a task is cancelling its thread.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "isl_io.h"

#define PACKETS 3u

static const uint8_t payload[] = "telemetry";

static struct
{
    uint64_t endpoint; /* of the receiver */
    uint64_t errors;
    bool     flushed; /* the task has left ISL_IO_Flush: it would now give the lock back */
    bool     went_on; /* the task was not cancelled at all */
} sender;

/**
 * Like the telemetry task, which sends with the node's lock. It is deleted before it gets to that. A deleted thread does not tidy
 * its stack, which AddressSanitizer takes for an overflow: it leaves this function alone.
 */
__attribute__((no_sanitize_address)) static void *send_while_deleted(void *unused)
{
    const SKY_PacketParts_t parts = {payload, NULL, NULL, sizeof(payload), 0, 0};

    (void)pthread_cancel(pthread_self()); /* takes effect at the next point where a thread can be cancelled */
    for (uint32_t i = 0; i < PACKETS; ++i)
    {
        ISL_IO_Send(sender.endpoint, &parts, &sender.errors);
    }
    ISL_IO_Flush();
    sender.flushed = true;
    pthread_testcancel();
    sender.went_on = true;
    return unused;
}

static void test_a_task_is_not_deleted_while_it_sends(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          len     = sizeof(address);
    const int          fd      = socket(AF_INET, SOCK_DGRAM, 0);
    pthread_t          thread;
    void              *result = NULL;
    uint8_t            received[sizeof(payload) + 1u];

    CHECK_EQ(bind(fd, (const struct sockaddr *)&address, len), 0);
    CHECK_EQ(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    sender.endpoint = SKY_Endpoint_Of(INADDR_LOOPBACK, ntohs(address.sin_port));
    CHECK_EQ(ISL_IO_Open(INADDR_LOOPBACK, 0), CFE_SUCCESS);

    CHECK_EQ(pthread_create(&thread, NULL, send_while_deleted, NULL), 0);
    CHECK_EQ(pthread_join(thread, &result), 0);
    CHECK(sender.flushed);
    CHECK(!sender.went_on);
    CHECK(result == PTHREAD_CANCELED);
    CHECK_EQ(sender.errors, 0);
    for (uint32_t i = 0; i < PACKETS; ++i) /* loopback has delivered before the call to send returned */
    {
        CHECK_EQ(recv(fd, received, sizeof(received), MSG_DONTWAIT), (ssize_t)sizeof(payload));
    }
    ISL_IO_Close();
    (void)close(fd);
}

int main(void)
{
    RUN(test_a_task_is_not_deleted_while_it_sends);
    return CHECK_RESULT();
}
