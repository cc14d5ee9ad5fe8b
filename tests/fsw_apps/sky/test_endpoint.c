/* Endpoints: address and port are two parts of one number. */
#include "sky_endpoint.h"

#include "check.h"

#define LOOPBACK 0x7F000001u

static void test_an_endpoint_gives_back_its_parts(void)
{
    static const uint32_t addresses[] = {0u, 1u, LOOPBACK, UINT32_MAX};
    static const uint16_t ports[]     = {0u, 1u, 4919u, UINT16_MAX};

    for (uint32_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); ++i)
    {
        for (uint32_t j = 0; j < sizeof(ports) / sizeof(ports[0]); ++j)
        {
            const uint64_t endpoint = SKY_Endpoint_Of(addresses[i], ports[j]);

            CHECK_EQ(SKY_Endpoint_Address(endpoint), addresses[i]);
            CHECK_EQ(SKY_Endpoint_Port(endpoint), ports[j]);
            CHECK_EQ(endpoint >> 63, 0u); /* the core marks endpoints by this bit */
        }
    }
}

static void test_an_address_may_be_wider_than_ipv4(void)
{
    const uint64_t endpoint = UINT64_C(0x7FFFFFFFFFFF1337);

    CHECK_EQ(SKY_Endpoint_Address(endpoint), UINT64_C(0x7FFFFFFFFFFF));
    CHECK_EQ(SKY_Endpoint_Port(endpoint), 0x1337u);
}

int main(void)
{
    RUN(test_an_endpoint_gives_back_its_parts);
    RUN(test_an_address_may_be_wider_than_ipv4);
    return CHECK_RESULT();
}
